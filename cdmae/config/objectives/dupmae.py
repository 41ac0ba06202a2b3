"""DupMAE: enhanced decoding, and a bag of words from the tokens' states (Xiao et al. 2023)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Bagged, Decoded
from cdmae.fields import settings


@settings
class DupMae(Bagged, Decoded):
    """Enhanced decoding and a bag of words."""

    in_words = "with DupMAE's enhanced decoding and bags of words (Xiao et al. 2023)"
    decoder_layers = 1

    objective: Literal["dupmae"] = "dupmae"
    """Enhanced decoding and a bag of words [Xiao et al. 2023]."""
