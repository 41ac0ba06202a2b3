"""ToRoDer: an encoder that reads misspelt words (Zhuang et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Gt, Le

from cdmae.config.encoders import Decoded, Layered, Masking
from cdmae.fields import Real, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class ToRoDer(Layered, Decoded):
    """A masked auto-encoder whose decoder restores the words that the encoder reads misspelt."""

    in_words = (
        "with ToRoDer's decoder, which restores the words that the encoder reads misspelt\n"
        "(Zhuang et al. 2023)"
    )

    objective: Literal["toroder"] = "toroder"
    """A masked auto-encoder whose encoder reads misspelt words; its decoder restores them; meant
    for queries with typing errors [Zhuang et al. 2023].
    """
    misspelt: Annotated[Real, Gt(0), Le(0.95)] = 0.3
    """Probability with which the encoder reads a word misspelt; only words of three or more letters
    a to z can be misspelt, without stop-words [ielab/boder, README.md: --augment_probability].
    """
    decoder_masking: Masking = "whole_word"
    """A file in cdmae/masking/strategies; it draws words in addition to the misspelt ones, up to
    decoder_ratio, with the encoder's strategy first those that the encoder masks [ielab/boder,
    data.py: TypoBoderCollator].
    """
    projection: bool = True
    """Linear projection of the bottleneck, equation 4 [table 4]."""

    def check(self, config: Config) -> None:
        """Refuse a decoder that masks less than the encoder."""
        self.check_nested()
        super().check(config)
