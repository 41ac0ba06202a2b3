"""The bottlenecked masked auto-encoder (section 3.1); CDMAE with importance-aware decoder masks."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Decoded, Layered
from cdmae.fields import settings


@settings
class Mae(Layered, Decoded):
    """A masked auto-encoder."""

    in_words = (
        "as a masked auto-encoder: a shallow decoder restores masked words from the [CLS] vector,\n"
        "here {masked} (Li et al. 2023, *Challenging Decoder helps in Masked Auto-Encoder\n"
        "Pre-training for Dense Passage Retrieval*)"
    )

    objective: Literal["mae"] = "mae"
    """A masked auto-encoder [3.1]."""
    projection: bool = True
    """Linear projection of the bottleneck, equation 4 [table 4]."""
