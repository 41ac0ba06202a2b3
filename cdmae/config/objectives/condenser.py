"""Condenser: a head over the late [CLS] and early token states (Gao and Callan 2021)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Layered
from cdmae.fields import Natural, settings, unfit


@settings
class EarlyLayers(Layered):
    """An encoder with a head that reads the tokens' states after the early layers."""

    early_layers: Natural = 0
    """Encoder layers before the token states that the head reads; 0: half of all layers [Condenser:
    6 of 12].
    """

    def check_layers(self, layers: int | None, owner: str) -> None:
        """Refuse `early_layers` that leave no late layers in the encoder."""
        if layers is not None and self.early_layers >= layers:
            raise unfit(
                self, "early_layers", f"; expected up to {layers - 1}, {owner} has {layers} layers"
            )


@settings
class Condenser(EarlyLayers):
    """Condenser's head."""

    in_words = "with Condenser's head over late [CLS] and early token states (Gao and Callan 2021)"

    objective: Literal["condenser"] = "condenser"
    """A head over late [CLS] and early token states [Gao and Callan 2021]."""
