"""LexMAE: a lexicon-weighted bottleneck (Shen et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config.encoders import DecoderMasked, Layered
from cdmae.fields import settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class LexMae(Layered, DecoderMasked):
    """A decoder that reads a distribution over the vocabulary instead of [CLS]."""

    in_words = (
        "with LexMAE's decoder, which restores masked words from the passage's distribution over\n"
        "the vocabulary (Shen et al. 2023)"
    )

    objective: Literal["lexmae"] = "lexmae"
    """A masked auto-encoder whose bottleneck is a distribution over the vocabulary; meant for
    sparse heads [Shen et al. 2023].
    """

    def check(self, config: Config) -> None:
        """Refuse a decoder that masks less than the encoder."""
        self.check_nested()
        super().check(config)
