"""coCondenser: Condenser, and the contrast of neighbouring spans (Gao and Callan 2022)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Contextual
from cdmae.config.objectives.condenser import EarlyLayers
from cdmae.errors import InputError
from cdmae.fields import settings


@settings
class CoCondenser(EarlyLayers, Contextual):
    """Condenser's head and a contrast of spans, or of passages and queries."""

    in_words = "with coCondenser's head and contrast of neighbouring texts (Gao and Callan 2022)"

    objective: Literal["cocondenser"] = "cocondenser"
    """Condenser's head and a contrast of neighbouring spans, or of passages and queries [Gao and
    Callan 2022].
    """

    def __post_init__(self) -> None:
        """Refuse batches without negatives."""
        super().__post_init__()
        if self.batch < 2:
            raise InputError(
                f"batch is {self.batch}; expected from 2, because the "
                "negatives are the other passages of the batch"
            )
