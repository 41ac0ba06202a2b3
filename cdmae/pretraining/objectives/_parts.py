"""What several objectives are made of: the encoder's side, decoders, the losses, the number that tells a collapse.

B passages, S rows, M predicted rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from cdmae import masking
from cdmae.errors import InputError
from cdmae.models import attention
from cdmae.pretraining.objectives._prediction import predict
from cdmae.training import setup

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from cdmae.config.schema import Encoder
    from cdmae.models.packed import Packed, Rows
    from cdmae.pretraining.batches import Batch, View


class Objective(nn.Module):
    """An encoder with its LM head, `model`, and what an objective adds to it. `name`: as in the config."""

    name: str
    sides = staticmethod(masking.sides)  # both masked, as equation 1 says; other objectives have sides of their own

    def __init__(self, model: BertForMaskedLM, settings: Encoder, seed: int) -> None:
        """Build it around a BERT with its LM head; new weights are a function of the seed and of their part's purpose.

        Raises `InputError` for a start that is no BERT.
        """
        super().__init__()
        if model.config.model_type != "bert":
            raise InputError(
                f"objective {self.name} needs a BERT with its LM head; the start is of the type "
                f"{model.config.model_type}"
            )
        self.model = model

    def encode(
        self, view: View, generator: Generator | None = None, inputs: Packed | None = None
    ) -> tuple[Tensor, Tensor]:
        """Equation 2: the [CLS] states h_c [B, D], and the states of the predicted tokens [M, D].

        inputs: what the encoder reads in place of the view's own.
        """
        inputs = inputs or view.inputs
        return read_states(
            attention.hidden_states(self.model.bert, inputs, last_rows=view.rows, generator=generator), view
        )

    def restore(
        self, layers: nn.Module, h_b: Tensor, inputs: Packed, rows: Rows, generator: Generator | None
    ) -> Tensor:
        """Return the states at `rows` after a decoder's `layers`, which read h_b [B, D] in the place of [CLS]."""
        states = attention.embed(self.model.bert, inputs, generator=generator)
        states = states.index_copy(0, inputs.starts[:-1].long(), h_b)
        return self.run(layers, states, inputs, rows, generator)

    def run(
        self, layers: nn.Module, states: Tensor, inputs: Packed, rows: Rows | None, generator: Generator | None
    ) -> Tensor:
        """Run some layers over states [S, D], the last of them at `rows` alone where these are all that is read."""
        dropout = self.model.config.hidden_dropout_prob
        return attention.run_layers(layers, states, inputs.layout, last_rows=rows, dropout=dropout, generator=generator)

    def losses(self, batch: Batch, h_c: Tensor, *sides: tuple[Tensor, View]) -> tuple[Tensor, dict[str, Tensor]]:
        """Predict from the states [M, D] of several views; return the loss, their sum, and the numbers to show.

        The first view's loss is shown as the encoder's, that of the others as the decoder's.
        """
        views = [view for _, view in sides]
        labels, weights = (torch.cat([getattr(view, name) for view in views]) for name in ("labels", "weights"))
        states = torch.cat([states for states, _ in sides])
        loss, losses = predict(self.model.cls.predictions, states, labels, weights)
        first = len(views[0].weights)
        return loss, {
            "encoder_loss": torch.dot(losses[:first], weights[:first]),
            "decoder_loss": torch.dot(losses[first:], weights[first:]),
            "spread": spread(h_c) * batch.share,
        }


def weights_of(seed: int, purpose: str) -> Generator:
    """Return what draws the new weights of a part: a function of the seed and the part's purpose."""
    return setup.generator(torch.device("cpu"), seed, purpose)


def read_states(states: Tensor, view: View) -> tuple[Tensor, Tensor]:
    """From the states of a view's `rows` with [CLS]: those of [CLS] [B, D] and of the predicted tokens [M, D]."""
    return states.index_select(0, view.rows.layout.starts[:-1]), states.index_select(0, view.masked)


def passages_of(view: View) -> Tensor:
    """Return the passage of each of the view's `rows`, int64 [R]; 0 for filler."""
    layout = view.rows.layout
    passages = layout.cells.div(layout.longest, rounding_mode="floor")
    return nn.functional.pad(passages, (0, layout.rows - len(passages)))


def spread(h_c: Tensor) -> Tensor:
    """Return the standard deviation of [CLS] over a micro-batch's passages, relative to its size; 1 for one passage."""
    h_c = h_c.detach()
    if len(h_c) == 1:
        return h_c.new_ones(())
    return h_c.std(0, correction=0).norm() / h_c.norm(dim=1).mean()
