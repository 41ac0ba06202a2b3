"""BoW-DPR: a bag of words from the vector (Ma et al. 2024)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Bagged, Pooled
from cdmae.fields import settings


@settings
class BowDpr(Bagged, Pooled):
    """The bag of words from the vector, without a decoder."""

    in_words = "with bag-of-words prediction from the [CLS] vector (Ma et al. 2024)"

    objective: Literal["bowdpr"] = "bowdpr"
    """The bag of words from the vector [Ma et al. 2024]."""
