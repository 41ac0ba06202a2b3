"""MASTER: decoders of the passage and of the neighbouring span (Zhou et al. 2022)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cdmae.config.encoders import Decoded, HomePath, Layered
from cdmae.fields import setting, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Master(Layered, Decoded):
    """Several decoders that read one vector."""

    in_words = (
        "with MASTER's decoders of the passage, of the neighbouring span and of further texts, if\n"
        "there are any (Zhou et al. 2022)"
    )
    spans = 2

    objective: Literal["master"] = setting(
        "master",
        meaning="decoders of the passage, of the neighbouring span and of written texts",
        source="Zhou et al. 2022",
    )

    texts: tuple[HomePath, ...] = setting(
        (),
        meaning="files of texts that other models wrote for the passages, such as docT5query's "
        "queries and GPT-2's continuations: lines of passage id, tab, text, also compressed (.gz). "
        "Every passage needs a text; if it has several in a file, one is drawn per epoch. Each "
        "file has a decoder of its own",
        source="Zhou et al. 2022: one file each",
    )

    @property
    def asked(self) -> str:
        """Return the collection whose ids occur in `texts`; empty if there are none."""
        return self.collection if self.texts else ""

    def check(self, config: Config) -> None:
        """Refuse texts that are no files, and masks that texts have no values for."""
        for path in self.texts:
            if not Path(path).is_file():
                raise unfit(
                    self,
                    "texts",
                    f", but {path} is no file; allowed: files of lines with a passage id, a tab "
                    "and a text",
                )
        if self.texts and self.masked_by_importance:
            raise unfit(
                self,
                "texts",
                ", but a masking is importance, which texts do not have; allowed: another "
                "encoder_masking and decoder_masking",
            )
        super().check(config)

    @property
    def held_layers(self) -> int:
        """Return the number of decoder layers whose activations are in memory at the same time."""
        return self.decoder_layers * (1 + len(self.texts))

    def predicted(self, tokens: float) -> float:
        """Count the masked tokens of the encoder and of all decoders.

        The lengths of `texts` are unknown; they count as a span.
        """
        return (self.encoder_ratio + (2 + len(self.texts)) * self.decoder_ratio) * tokens

    def further_flops(self, network: Any, tokens: float) -> float:
        """Count the decoders after the first, forward and backward."""
        return 3 * (1 + len(self.texts)) * self.decoder_layers * network.layer(tokens)
