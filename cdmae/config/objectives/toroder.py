"""ToRoDer: an encoder that reads misspelt words (Zhuang et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config.encoders import Decoded, Layered, Masking
from cdmae.fields import setting, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class ToRoDer(Layered, Decoded):
    """A masked auto-encoder whose decoder restores the words that the encoder reads misspelt."""

    in_words = (
        "with ToRoDer's decoder, which restores the words that the encoder reads misspelt\n"
        "(Zhuang et al. 2023)"
    )

    objective: Literal["toroder"] = setting(
        "toroder",
        meaning="a masked auto-encoder whose encoder reads misspelt words; its decoder restores "
        "them; meant for queries with typing errors",
        source="Zhuang et al. 2023",
    )
    misspelt: float = setting(
        0.3,
        meaning="probability with which the encoder reads a word misspelt; only words of three or "
        "more letters a to z can be misspelt, without stop-words",
        source="ielab/boder, README.md: --augment_probability",
        above=0,
        high=0.95,
    )
    decoder_masking: Masking = setting(
        "whole_word",
        meaning="a file in cdmae/masking/strategies; it draws words in addition to the misspelt "
        "ones, up to decoder_ratio, with the encoder's strategy first those that the encoder masks",
        source="ielab/boder, data.py: TypoBoderCollator",
    )
    projection: bool = setting(
        True, meaning="linear projection of the bottleneck, equation 4", source="table 4"
    )

    def check(self, config: Config) -> None:
        """Refuse a decoder that masks less than the encoder."""
        self.check_nested()
        super().check(config)
