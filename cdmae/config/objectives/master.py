"""MASTER: several decoders of the passage and its neighbour (Zhou et al. 2022)."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le

from cdmae.config.encoders import Decoded, Layered
from cdmae.fields import Real, settings


@settings
class Master(Layered, Decoded):
    """Several decoders that read one vector."""

    in_words = (
        "with MASTER's decoders of the passage and of its neighbour and, if there is one,\n"
        "of the words that a second pass of the encoder sees (Zhou et al. 2022)"
    )
    spans = 2

    objective: Literal["master"] = "master"
    """Decoders of the passage and of the neighbouring span [Zhou et al. 2022]."""

    complement_ratio: Annotated[Real, Ge(0), Le(0.99)] = 0.5
    """Share of the words that are masked in a second pass of the encoder; from its vector, a
    further decoder restores all other words; 0: without them [Zhou et al. 2022, data.py:
    _whole_word_mask_dual].
    """

    @property
    def has_complement(self) -> bool:
        """Return whether there is a second pass of the encoder, with a decoder of its own."""
        return self.complement_ratio > 0

    @property
    def held_layers(self) -> int:
        """Return the number of decoder layers whose activations are in memory at the same time."""
        return self.decoder_layers * (1 + self.has_complement)

    @property
    def passes(self) -> int:
        """Return the number of the encoder's passes."""
        return 1 + self.has_complement
