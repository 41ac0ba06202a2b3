"""Condenser (Gao and Callan 2021): a head over the late [CLS] and early token states.

The encoder's last layers are cut short for tokens: a head of new layers reads [CLS] as it leaves
the encoder, and the other tokens as they were after the early layers, and predicts the encoder's
masked tokens; what the late layers find must go through [CLS]. The encoder predicts them, too (the
paper's L^c_mlm, `late_mlm` of its code).

    B passages, S rows, M predicted rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Generator, Tensor

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.models import architectures, transformer, weights
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import Objective, read_states, weights_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Condenser(Objective):
    """Encoder and head."""

    name = "condenser"

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Draw the head's weights by `seed`; raises `InputError` where no late layers are left."""
        super().__init__(model, settings, seed)
        layers = model.config.num_hidden_layers
        settings.check_layers(layers, "the start")
        self.early = settings.early_layers or layers // 2
        self.head = weights.layers(
            model.config, settings.decoder_layers, weights_of(seed, "decoder")
        )

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Return the encoder's masks: the head predicts the same tokens."""
        return {"encoder": masking.encoder_side(settings, unit)}

    def forward(
        self, batch: Batch, generator: Generator | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """L = L^c_mlm + L_mlm: of the encoder and of the head, at the same masked tokens."""
        return self.condensed(batch, generator)[0]

    def condensed(
        self, batch: Batch, generator: Generator | None
    ) -> tuple[tuple[Tensor, dict[str, Tensor]], Tensor]:
        """Return what `forward` does, and the late [CLS] [B, D]."""
        view = batch["encoder"]
        early, h_c, encoded = self.early_and_late(view, generator)
        states = early.index_copy(0, view.inputs.starts[:-1].long(), h_c)
        encoder = self.model.base_model
        states = transformer.run(
            encoder, self.head, states, view.inputs, last_rows=view.rows, generator=generator
        )
        return self.losses(
            batch, h_c, (encoded, view), (states.index_select(0, view.masked), view)
        ), h_c

    def early_and_late(
        self, view: View, generator: Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return early states [S, D], late [CLS] [B, D] and late states of masked tokens [M, D]."""
        encoder, inputs = self.model.base_model, view.inputs
        states, layers = (
            transformer.embed(encoder, inputs, generator=generator),
            architectures.layers(encoder),
        )
        if self.early:
            states = transformer.run(
                encoder, layers[: self.early], states, inputs, generator=generator
            )
        late = transformer.run(
            encoder, layers[self.early :], states, inputs, last_rows=view.rows, generator=generator
        )
        return transformer.finish(encoder, states), *read_states(
            transformer.finish(encoder, late), view
        )
