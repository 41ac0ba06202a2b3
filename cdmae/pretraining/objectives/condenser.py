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
from cdmae.models import attention, weights
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import check_bert, losses_of, read_states, weights_of

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from cdmae.config.schema import Encoder
    from cdmae.masking import Side


def sides(settings: Encoder, unit: str) -> dict[str, Side]:
    """Return the encoder's masks: the head predicts the same tokens."""
    encoder, _ = masking.sides(settings, unit)
    return {"encoder": encoder}


def create(model: BertForMaskedLM, settings: Encoder, seed: int) -> Condenser:
    """Build the objective around a BERT with its LM head; the head's random weights depend on `seed`."""
    return Condenser(*parts(model, settings, seed, "condenser"))


def parts(
    model: BertForMaskedLM, settings: Encoder, seed: int, name: str
) -> tuple[BertForMaskedLM, int, int, Generator]:
    """Return the parts of a Condenser for the objective `name`; raises `InputError` where they do not fit together."""
    check_bert(model, name)
    layers = model.config.num_hidden_layers
    if settings.early_layers >= layers:
        raise InputError(
            f"early_layers is {settings.early_layers}; allowed: up to {layers - 1}, the start has {layers} layers"
        )
    early = settings.early_layers or layers // 2
    return model, early, settings.decoder_layers, weights_of(seed, "decoder")


class Condenser(nn.Module):
    """Encoder and head."""

    def __init__(self, model: BertForMaskedLM, early: int, head_layers: int, generator: Generator) -> None:
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
        states = attention.embed(self.model.bert, view.inputs, generator=generator)
        layers = self.model.bert.encoder.layer
        if self.early:
            states = self.run(layers[: self.early], states, view, generator)
        late = self.run(layers[self.early :], states, view, generator, last=True)
        return states, *read_states(late, view)

    def condense(self, early: Tensor, h_c: Tensor, view: View, generator: Generator | None = None) -> Tensor:
        """Return the head's states of the masked tokens [M, D]."""
        states = early.index_copy(0, view.inputs.starts[:-1].long(), h_c)
        return self.run(self.head, states, view, generator, last=True).index_select(0, view.masked)

    def run(
        self, layers: nn.ModuleList, states: Tensor, view: View, generator: Generator | None, *, last: bool = False
    ) -> Tensor:
        """Run some layers over the rows of a view; `last`: the last of them where its states are read only."""
        rows, dropout = view.rows if last else None, self.model.config.hidden_dropout_prob
        return attention.run_layers(
            layers, states, view.inputs.layout, last_rows=rows, dropout=dropout, generator=generator
        )
