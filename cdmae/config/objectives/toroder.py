"""ToRoDer: an encoder that reads misspelt words (Zhuang et al. 2023)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Layered, Pooled
from cdmae.fields import setting, settings


@settings
class ToRoDer(Layered, Pooled):
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
        source="ToRoDer: 30 % of the words",
        above=0,
        high=0.95,
    )
    projection: bool = setting(
        True, meaning="linear projection of the bottleneck, equation 4", source="table 4"
    )

    def predicted(self, tokens: float) -> float:
        """Count the encoder's masked tokens and the decoder's, at most."""
        return (self.encoder_ratio + self.misspelt) * tokens
