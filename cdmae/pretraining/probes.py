"""Measurements at a few steps of pre-training, without gradients or random numbers.

Training is bit-identical with and without them. Each probe is a table in the training's state, and
finally a file next to the encoder. It measures the same passages each time:

``bottleneck.tsv``: the losses of a decoder, in nats, with the right vector, a wrong vector and
none. If the three are equal, the decoder does not use the vector, and it teaches the encoder
nothing. Their differences measure the information about a passage in its vector. If there are
several decoders, the first is measured.

``retrieval.tsv``: how well one half of a passage finds the other by its vector, before any
fine-tuning. The first halves of a sample of passages are the queries, and the second halves are the
passages to be found. If a vector represents the topic of its text, the other half ranks first.

    B passages of a micro-batch, n passages in halves, D dimensions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae.log import say
from cdmae.models import architectures, packed, sequences, transformer
from cdmae.models.ragged import Ragged
from cdmae.pretraining.objectives._prediction import predict
from cdmae.pretraining.reader import word_begins

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Batch
    from cdmae.pretraining.reader import Reader
    from cdmae.training.state import State

# share of the initial MRR between halves: encoders that ended below it did not train in fine-tuning
FORGOTTEN = 0.8
LOOKS = 5  # the first, the last and some in between: 1 % of the time of a small training
PASSAGES = 2000  # maximum number of passages in halves
LEAST = 16  # minimum word-pieces of a passage; shorter halves are uninformative
DEPTH = 10  # of MRR@10
BUDGET = {"cpu": 1 << 13, "cuda": 1 << 17}  # word-pieces of halves that are computed together


class Probes:
    """The probes of a training, with their inputs."""

    def __init__(
        self, network: nn.Module, reader: Reader, last: int, saved: State, *, rows: int
    ) -> None:
        """Choose steps up to the `last` one; rows: of a micro-batch.

        Only the process that writes the state runs probes.
        """
        self.network = network
        self.saved = saved
        self.spans = reader.spans
        self.steps: set[int] = set()
        if saved.writes:
            self.steps.update(np.linspace(0, last, LOOKS).astype(int).tolist())
            self.sample = sample(reader, rows, saved.group.device) if network.probed else None
            self.halves = halves(reader)

    def look(self, step: int) -> None:
        """Measure after `step` updates, if it is one of the chosen steps."""
        if step not in self.steps:
            return
        if self.sample is not None:
            losses = decoder_losses(self.network, self.sample, self.spans)
            self._add("bottleneck.tsv", step, losses)
        if len(self.halves) >= 4:
            vectors = encode(
                self.network.model.base_model, self.halves, self.network.settings.pooling
            )
            rank = reciprocal_rank(vectors[::2], vectors[1::2])
            self._add("retrieval.tsv", step, {"rr": rank, "passages": len(vectors) // 2})

    def _add(self, file: str, step: int, numbers: dict[str, float]) -> None:
        self.saved.begin(file, ["step", *numbers])
        self.saved.add(file, step=step, **numbers)


def doubts(saved: State) -> list[str]:
    """Return and log a note if vectors distinguish passages less well than before pre-training."""
    values = [float(row[1]) for row in saved.tables.get("retrieval.tsv", [])[1:]]
    if not values or values[-1] >= FORGOTTEN * values[0]:
        return []
    note = (
        "by its vector, half of a passage finds the other half with an MRR@10 of "
        f"{100 * values[-1]:.1f}, but {100 * values[0]:.1f} before the pre-training: the encoder "
        "has become worse (lower learning_rate, or train for longer)"
    )
    say(f"{saved.name}: {note}")
    return [note]


# --- the bottleneck -------------------------------------------------------------------------------


def sample(reader: Reader, rows: int, device: torch.device) -> Batch | None:
    """Return as many passages of the first step as fit into `rows`, those of medium length.

    Returns None for a single passage, which has no neighbour.
    """
    (first,) = reader.read(0, 1)
    batches = list(first.batches(rows, device))  # from short to long passages
    batch = batches[len(batches) // 2]
    return batch if batch.range.stop - batch.range.start > reader.spans else None


@torch.no_grad()
def decoder_losses(network: nn.Module, batch: Batch, spans: int) -> dict[str, float]:
    """Return the decoder's mean losses in nats with the true h_b [B, D], a neighbour's, and 0.

    The neighbour is a text of another passage. spans: texts per passage.
    """
    view = batch["decoder"]
    h_b = network.bottleneck(network.encode(batch["encoder"])[0])
    vectors = {"true": h_b, "shuffled": h_b.roll(spans, 0), "zero": torch.zeros_like(h_b)}
    losses = {}
    for name, vector in vectors.items():
        states = network.decode(vector, view)
        total = predict(architectures.head(network.model), states, view.labels, view.weights)[0]
        losses[name] = float(total / view.weights.sum())
    return losses


# --- halves ---------------------------------------------------------------------------------------


def halves(reader: Reader) -> Ragged:
    """Return framed halves of evenly spaced passages, in the order first, second, first, ...

    A passage is cut as in training, then halved before the word that holds its middle.
    """
    lengths = np.diff(reader.tokens.starts)
    long = np.flatnonzero(lengths >= min(LEAST, reader.length))
    evenly = np.linspace(0, max(0, len(long) - 1), min(len(long), PASSAGES)).astype(np.int64)
    rows = long[np.unique(evenly)]
    whole = Ragged(reader.tokens.ids, reader.tokens.starts).take(rows, reader.length)
    begins = whole.starts[:-1]
    middles = begins + whole.lengths // 2
    cuts = word_begins(middles, begins, whole.values, reader.vocabulary.word_starts)
    bounds = np.append(np.stack([begins, cuts], axis=1).ravel(), whole.starts[-1])
    return sequences.frame(Ragged(whole.values, bounds), reader.vocabulary)


@torch.no_grad()
def encode(model: nn.Module, read: Ragged, pooling: str = "cls") -> Tensor:
    """Return the vectors of sequences, float32 [2 n, D]."""
    device = model.device
    vectors = torch.empty(len(read), model.config.hidden_size, device=device)
    for rows in sequences.chunks(read.lengths, BUDGET[device.type]):
        part = transformer.vectors(model, packed.pack(read.take(rows), device), pooling)
        vectors[torch.from_numpy(rows).to(device)] = part.float()
    return vectors


def reciprocal_rank(queries: Tensor, passages: Tensor) -> float:
    """Return MRR@10 of passage i for query i, both [n, D]; the correct passage loses all ties.

    The value expected by chance is H_10 / n, which is 2.93 / n.
    """
    # bfloat16 cannot distinguish scores that are so close to each other.
    with torch.autocast(queries.device.type, enabled=False):
        scores = queries @ passages.T
    ranks = (scores >= scores.diagonal()[:, None]).sum(1)
    return float(torch.where(ranks <= DEPTH, 1 / ranks, 0.0).mean())
