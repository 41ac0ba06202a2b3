"""Condenser (Gao and Callan 2021): a head over the late [CLS] and early token states.

The encoder's last layers are cut short for tokens: a head of new layers reads [CLS] as it leaves the encoder, and the
other tokens as they were after the early layers, and predicts the encoder's masked tokens; what the late layers find
must go through [CLS]. The encoder predicts them, too (the paper's L^c_mlm, `late_mlm` of its code).

    B passages, S rows, M predicted rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Generator, Tensor, nn

from cdmae import masking
from cdmae.errors import InputError
from cdmae.models import architectures, attention, weights
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import losses_of, read_states, weights_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.schema import Encoder
    from cdmae.masking import Side


def sides(settings: Encoder, unit: str) -> dict[str, Side]:
    """Return the encoder's masks: the head predicts the same tokens."""
    encoder, _ = masking.sides(settings, unit)
    return {"encoder": encoder}


def create(model: PreTrainedModel, settings: Encoder, seed: int) -> Condenser:
    """Build the objective around an encoder with its LM head; the head's random weights depend on `seed`."""
    return Condenser(*parts(model, settings, seed, "condenser"))


def parts(
    model: PreTrainedModel, settings: Encoder, seed: int, name: str
) -> tuple[PreTrainedModel, int, int, Generator]:
    """Return the parts of a Condenser for the objective `name`; raises `InputError` where they do not fit together."""
    layers = model.config.num_hidden_layers
    if settings.early_layers >= layers:
        raise InputError(
            f"early_layers is {settings.early_layers}; allowed: up to {layers - 1}, the start has {layers} layers"
        )
    early = settings.early_layers or layers // 2
    return model, early, settings.decoder_layers, weights_of(seed, "decoder")


class Condenser(nn.Module):
    """Encoder and head."""

    def __init__(self, model: PreTrainedModel, early: int, head_layers: int, generator: Generator) -> None:
        """early: layers after which the head reads the tokens; `generator` draws the head's weights."""
        super().__init__()
        self.model, self.early = model, early
        self.head = weights.layers(model.config, head_layers, generator)

    def forward(self, batch: Batch, generator: Generator | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """L = L^c_mlm + L_mlm: of the encoder and of the head, at the same masked tokens."""
        loss, numbers, _ = self.condensed(batch, generator)
        return loss, numbers

    def condensed(self, batch: Batch, generator: Generator | None = None) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Return the loss, its numbers and the late [CLS] [B, D]."""
        view = batch["encoder"]
        early, h_c, encoded = self.encode(view, generator)
        condensed = self.condense(early, h_c, view, generator)
        return *losses_of(self.model, batch, h_c, (encoded, view), (condensed, view)), h_c

    def encode(self, view: View, generator: Generator | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the early states [S, D], the late [CLS] [B, D] and the late states of the masked tokens [M, D]."""
        encoder, inputs = self.model.base_model, view.inputs
        states, layers = attention.embed(encoder, inputs, generator=generator), architectures.layers(encoder)
        if self.early:
            states = attention.run(encoder, layers[: self.early], states, inputs, generator=generator)
        late = attention.run(encoder, layers[self.early :], states, inputs, last_rows=view.rows, generator=generator)
        return attention.finish(encoder, states), *read_states(attention.finish(encoder, late), view)

    def condense(self, early: Tensor, h_c: Tensor, view: View, generator: Generator | None = None) -> Tensor:
        """Return the head's states of the masked tokens [M, D]."""
        states = early.index_copy(0, view.inputs.starts[:-1].long(), h_c)
        dropout = architectures.dropout(self.model.config)
        states = attention.run_layers(
            self.head, states, view.inputs.layout, last_rows=view.rows, dropout=dropout, generator=generator
        )
        return states.index_select(0, view.masked)
