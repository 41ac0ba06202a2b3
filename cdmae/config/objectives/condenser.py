"""Condenser: a head over the late [CLS] and early token states (Gao and Callan 2021)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Layered
from cdmae.fields import setting, settings, unfit


@settings
class EarlyLayers(Layered):
    """An encoder with a head that reads the tokens' states after the early layers."""

    early_layers: int = setting(
        0,
        meaning="encoder layers before the token states that the head reads; 0: half of all layers",
        source="Condenser: 6 of 12",
        low=0,
        high=1000,
    )

    def check_layers(self, layers: int | None, owner: str) -> None:
        """Refuse `early_layers` that leave no late layers in the encoder."""
        if layers is not None and self.early_layers >= layers:
            raise unfit(
                self, "early_layers", f"; allowed: up to {layers - 1}, {owner} has {layers} layers"
            )

    def predicted(self, tokens: float) -> float:
        """Count the masked tokens of the encoder twice: for its last layer and for the head."""
        return 2 * self.encoder_ratio * tokens


@settings
class Condenser(EarlyLayers):
    """Condenser's head."""

    in_words = "with Condenser's head over late [CLS] and early token states (Gao and Callan 2021)"

    objective: Literal["condenser"] = setting(
        "condenser",
        meaning="a head over late [CLS] and early token states",
        source="Gao and Callan 2021",
    )
