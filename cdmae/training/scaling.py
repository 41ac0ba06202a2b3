"""Loss scaling: training with products in float16 (Micikevicius et al. 2018, arXiv:1710.03740).

float16 has no numbers between 0 and 6e-8, where many gradients are. The loss is therefore
multiplied by a scale before the backward pass, and the gradients are divided by it afterwards. If
the scale is too large, a gradient overflows. The step is then skipped: it changes no weight, but
counts as a step of the schedule, and the scale is halved. torch's scaler begins at 65,536 and
doubles the scale after 2,000 steps without an overflow.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from cdmae.errors import InputError
from cdmae.training import setup

LEAST = 0.005  # at a smaller scale, no gradient needs to overflow


class Scaler(torch.amp.GradScaler):
    """The scale of one training's loss; in other precisions than fp16 it does nothing.

    skipped: the number of skipped steps so far.

    Processes first add up their gradients. An overflow in one of them is then found in all.
    """

    def __init__(self, precision: str, on: torch.device) -> None:
        """Scale the losses of a training in this precision."""
        super().__init__(on.type, enabled=setup.precision(precision, on) == "fp16")
        # torch makes the scale on the first use; a process without texts would have none
        self.scale(torch.zeros((), device=on))
        self.skipped = 0

    def skips(self, gradient_norm: Tensor) -> bool:
        """Return whether the step of the last `update` was skipped; count skipped steps.

        gradient_norm: the norm of all gradients, 0-d; in fp16, this waits for the device. Raises
        `InputError` if the gradients overflow at any scale.
        """
        if not self.is_enabled() or math.isfinite(gradient_norm):
            return False
        self.skipped += 1
        if self.get_scale() < LEAST:
            raise InputError(
                "training diverged: the gradients overflow in fp16, however small the loss is "
                "scaled; lower learning_rate, or set precision to fp32"
            )
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and the count for `load_state_dict`."""
        return {**super().state_dict(), "skipped": self.skipped}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume from a saved state; a state of another precision has no scale."""
        if "scale" in state_dict:
            super().load_state_dict(state_dict)
        self.skipped = state_dict["skipped"]


UNSCALED = Scaler("fp32", torch.device("cpu"))  # for a gradient outside a training
