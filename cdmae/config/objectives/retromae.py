"""RetroMAE: enhanced decoding (Xiao et al. 2022)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Decoded
from cdmae.fields import settings


@settings
class RetroMae(Decoded):
    """Enhanced decoding: one decoder layer that predicts every token."""

    in_words = "with RetroMAE's enhanced decoding (Xiao et al. 2022)"
    decoder_layers = 1

    objective: Literal["retromae"] = "retromae"
    """Enhanced decoding [Xiao et al. 2022]."""
