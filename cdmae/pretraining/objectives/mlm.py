"""Masked language modelling (Devlin et al. 2019): equations 1 to 3, without a decoder.

All other objectives contain this loss. With ``encoder_masking: importance`` important words are
masked more often, as in ROM (retrieval-oriented masking, Long et al. 2022). ROM's importance comes
from another model.

    B passages, M predicted rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Generator

from cdmae.pretraining.objectives._parts import Losses, Objective, spread

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Batch


class Mlm(Objective):
    """The encoder and its LM head."""

    name = "mlm"
    masked = ("encoder",)

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return equation 3, the mean over the global batch's masked tokens; there is no L_dec."""
        view = batch["encoder"]
        h_c, encoded = self.encode(view, generator)
        loss, numbers = self.losses(batch, h_c, (encoded, view))
        # nothing trains the vectors, which may become equal without a failure
        return loss, numbers | {"spread": spread(encoded) * batch.share}
