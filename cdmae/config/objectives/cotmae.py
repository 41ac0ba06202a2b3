"""CoT-MAE: decoding of the neighbouring span (Wu et al. 2023)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Decoded, Layered
from cdmae.fields import setting, settings


@settings
class CotMae(Layered, Decoded):
    """A decoder of the neighbouring span."""

    in_words = "with CoT-MAE's decoding of the neighbouring span (Wu et al. 2023)"
    spans = 2

    objective: Literal["cotmae"] = setting(
        "cotmae",
        meaning="a masked auto-encoder that decodes the neighbouring span",
        source="Wu et al. 2023",
    )
