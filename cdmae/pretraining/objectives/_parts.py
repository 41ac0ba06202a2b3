"""Shared parts of objectives: the encoder's side, losses, and the spread that reveals a collapse.

B passages, S rows, M predicted rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.models import architectures, transformer
from cdmae.pretraining.objectives._prediction import predict
from cdmae.pretraining.reader import Reader
from cdmae.training import setup

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.masking import Side
    from cdmae.pretraining.batches import Batch, View


Losses = tuple[Tensor, dict[str, Tensor]]  # the total, and the curve's numbers


class Objective(nn.Module):
    """An objective: an encoder with its LM head, `model`, and the parts added to it.

    name: as in the config. reader: the class that reads and masks its texts. masked, plain: its
    sides, which mask the text (equation 1) or show it as it is. nested: whether the decoder also
    masks what the encoder masks. probed: whether it has a decoder that restores tokens from
    `bottleneck` of the vector, which `cdmae.pretraining.probes` measures.
    """

    name: str
    reader: type[Reader] = Reader
    masked: tuple[str, ...] = ("encoder", "decoder")
    plain: tuple[str, ...] = ()
    nested = False
    probed = False

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Build the objective around an encoder with its LM head; `seed` draws new weights."""
        super().__init__()
        self.model = model
        self.settings = settings

    @classmethod
    def sides(cls, settings: Pretraining, unit: str) -> dict[str, Side]:
        """Return the sides by name, the encoder's first; unit: of the importance."""
        beyond = {"decoder": "encoder"} if cls.nested else {}
        masked = {
            name: masking.side_of(settings, name, unit, beyond.get(name, "")) for name in cls.masked
        }
        return masked | dict.fromkeys(cls.plain, masking.PLAIN)

    def encode(self, view: View, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Compute equation 2: the vectors h_c [B, D] and the states of the predicted tokens [M, D].

        The vectors are the [CLS] states, or the mean states if `pooling` is mean.
        """
        encoder = self.model.base_model
        rows = None if self.settings.pooling == "mean" else view.rows
        states = transformer.hidden_states(
            encoder, view.inputs, last_rows=rows, generator=generator
        )
        return self.read_all(states, view) if rows is None else read_states(states, view)

    def read_all(self, states: Tensor, view: View) -> tuple[Tensor, Tensor]:
        """Return the result of `encode` from the encoder's states at all rows [S, D]."""
        if self.settings.pooling == "mean":
            h_c = transformer.mean(states, view.inputs)
        else:
            h_c = states.index_select(0, view.inputs.starts[:-1])
        predicted = states.index_select(0, view.rows.index).index_select(0, view.masked)
        return h_c.to(states.dtype), predicted

    def losses(self, batch: Batch, h_c: Tensor, *sides: tuple[Tensor, View]) -> Losses:
        """Predict from several views' states [M, D]; return their loss and the curve's numbers.

        The curve shows the first view's loss as the encoder's, the others' as the decoder's.
        """
        views = [view for _, view in sides]
        labels = torch.cat([view.labels for view in views])
        shares = torch.cat([view.weights for view in views])
        states = torch.cat([states for states, _ in sides])
        loss, losses = predict(architectures.head(self.model), states, labels, shares)
        first = len(views[0].weights)
        return loss, {
            "encoder_loss": torch.dot(losses[:first], shares[:first]),
            "decoder_loss": torch.dot(losses[first:], shares[first:]),
            "spread": spread(h_c) * batch.share,
        }


def added(losses: Losses, further: Tensor) -> Losses:
    """Add the loss `further` to the total and the decoder's loss of `Objective.losses`."""
    loss, numbers = losses
    return loss + further, numbers | {"decoder_loss": numbers["decoder_loss"] + further.detach()}


def weights_of(seed: int, purpose: str) -> Generator:
    """Return a random generator for a part's weights, seeded by `seed` and `purpose`."""
    return setup.generator(torch.device("cpu"), seed, purpose)


def read_states(states: Tensor, view: View) -> tuple[Tensor, Tensor]:
    """Split a view's `rows` into the states of [CLS] [B, D] and of the predicted tokens [M, D]."""
    return states.index_select(0, view.rows.starts[:-1]), states.index_select(0, view.masked)


def passages_of(view: View) -> Tensor:
    """Return the passage of each of the view's `rows`, int64 [R]; 0 for filler."""
    rows = view.rows
    passages = rows.cells.div(rows.longest, rounding_mode="floor")
    return nn.functional.pad(passages, (0, rows.size - len(passages)))


def spread(h_c: Tensor) -> Tensor:
    """Return the relative standard deviation of vectors [B, D] over passages; 1 for one passage."""
    h_c = h_c.detach()
    if len(h_c) == 1:
        return h_c.new_ones(())
    return h_c.std(0, correction=0).norm() / h_c.norm(dim=1).mean()
