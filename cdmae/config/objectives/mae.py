"""The bottlenecked masked auto-encoder (section 3.1); CDMAE with importance-aware decoder masks."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Decoded, Layered
from cdmae.fields import setting, settings


@settings
class Mae(Layered, Decoded):
    """A masked auto-encoder."""

    in_words = (
        "as a masked auto-encoder: a shallow decoder restores masked words from the [CLS] vector,\n"
        "here {masked} (Li et al. 2023, *Challenging Decoder helps in Masked Auto-Encoder\n"
        "Pre-training for Dense Passage Retrieval*)"
    )

    objective: Literal["mae"] = setting("mae", meaning="a masked auto-encoder", source="3.1")
    projection: bool = setting(
        True, meaning="linear projection of the bottleneck, equation 4", source="table 4"
    )
