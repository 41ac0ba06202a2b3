"""CoT-MAE: decoding of the neighbouring span (Wu et al. 2023)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Contextual, Decoded, Layered
from cdmae.fields import settings


@settings
class CotMae(Layered, Decoded, Contextual):
    """A decoder of the neighbouring span, or of a query."""

    in_words = "with CoT-MAE's decoding of the neighbouring text (Wu et al. 2023)"

    objective: Literal["cotmae"] = "cotmae"
    """A masked auto-encoder that decodes the neighbouring span, or a query [Wu et al. 2023]."""
