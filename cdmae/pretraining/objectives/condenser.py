"""Condenser (Gao and Callan 2021): a head over the late [CLS] and early token states.

A head of new layers predicts the encoder's masked tokens. It reads the [CLS] state of the last
layer, but the token states of the early layers: information from the late layers reaches it only
through [CLS]. The encoder predicts the same tokens (the paper's L^c_mlm, `late_mlm` of its code).

    B passages, S rows, M predicted rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Generator, Tensor

from cdmae.config.encoders import Pretraining
from cdmae.models import architectures, transformer, weights
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import Losses, Objective, read_states, weights_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Condenser(Objective):
    """Encoder and head."""

    name = "condenser"
    masked = ("encoder",)  # the head predicts the same tokens

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Draw the head's weights by `seed`; raise `InputError` if no late layers are left."""
        super().__init__(model, settings, seed)
        layers = model.config.num_hidden_layers
        settings.check_layers(layers, "the initial checkpoint")
        self.early = settings.early_layers or layers // 2
        self.head = weights.layers(
            model.config, settings.decoder_layers, weights_of(seed, "decoder")
        )

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return L = L^c_mlm + L_mlm: encoder and head at the same masked tokens."""
        return self.condensed(batch, generator)[0]

    def condensed(self, batch: Batch, generator: Generator | None) -> tuple[Losses, Tensor]:
        """Return the result of `forward`, and the late [CLS] [B, D]."""
        view = batch["encoder"]
        early, h_c, encoded = self.early_and_late(view, generator)
        states = early.index_copy(0, view.inputs.starts[:-1].long(), h_c)
        encoder = self.model.base_model
        states = transformer.run(
            encoder, self.head, states, view.inputs, last_rows=view.rows, generator=generator
        )
        restored = states.index_select(0, view.masked)
        return self.losses(batch, h_c, (encoded, view), (restored, view)), h_c

    def early_and_late(
        self, view: View, generator: Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return early states [S, D], late [CLS] [B, D] and late states of masked tokens [M, D]."""
        encoder = self.model.base_model
        inputs = view.inputs
        layers = architectures.layers(encoder)
        states = transformer.embed(encoder, inputs, generator=generator)
        if self.early:
            states = transformer.run(
                encoder, layers[: self.early], states, inputs, generator=generator
            )
        late = transformer.run(
            encoder, layers[self.early :], states, inputs, last_rows=view.rows, generator=generator
        )
        h_c, encoded = read_states(transformer.finish(encoder, late), view)
        return transformer.finish(encoder, states), h_c, encoded
