"""An encoder without pre-training: a checkpoint, or random weights."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Encoder
from cdmae.fields import settings


@settings
class NotPretrained(Encoder):
    """No pre-training: the initial weights unchanged."""

    objective: Literal["none"] = "none"
    """Not pre-trained."""
