"""MASTER: several decoders of the passage, its neighbour and written texts (Zhou et al. 2022)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cdmae.config.encoders import Decoded, Layered
from cdmae.fields import HomePath, Share, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Master(Layered, Decoded):
    """Several decoders that read one vector."""

    in_words = (
        "with MASTER's decoders of the passage and of its neighbour and, if there are any,\n"
        "of the words that a second pass of the encoder sees and of written texts\n"
        "(Zhou et al. 2022)"
    )
    spans = 2

    objective: Literal["master"] = "master"
    """Decoders of the passage, of the neighbouring span and of written texts [Zhou et al. 2022]."""

    complement_ratio: Share = 0.5
    """Share of the words that are masked in a second pass of the encoder; from its vector, a
    further decoder restores all other words; 0: without them [Zhou et al. 2022, data.py:
    _whole_word_mask_dual].
    """
    texts: tuple[HomePath, ...] = ()
    """Files of texts that other models wrote for the passages, such as docT5query's queries and
    GPT-2's continuations: lines of passage id, tab, text, also compressed (.gz). Every passage
    needs a text; if it has several in a file, one is drawn per epoch. Each file has a decoder of
    its own [Zhou et al. 2022: one file each].
    """

    @property
    def asked(self) -> str:
        """Return the collection whose ids occur in `texts`; empty if there are none."""
        return self.collection if self.texts else ""

    def check(self, config: Config) -> None:
        """Refuse texts that are no files."""
        for path in self.texts:
            if not Path(path).is_file():
                words = f", but {path} is no file; expected files of passage ids and texts"
                raise unfit(self, "texts", words)
        super().check(config)

    @property
    def has_complement(self) -> bool:
        """Return whether there is a second pass of the encoder, with a decoder of its own."""
        return self.complement_ratio > 0

    @property
    def held_layers(self) -> int:
        """Return the number of decoder layers whose activations are in memory at the same time."""
        return self.decoder_layers * (1 + self.has_complement + len(self.texts))

    @property
    def passes(self) -> int:
        """Return the number of the encoder's passes."""
        return 1 + self.has_complement
