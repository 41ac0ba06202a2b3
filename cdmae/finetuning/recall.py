"""Training of DeepCT: weights of words regressed on query term recall.

The target of word t in passage d is QTR(t, d) = |Q_{d,t}| / |Q_d|: the share of the passage's
training queries Q_d that contain t (Dai and Callan 2019, equation 1). A word is scored at its first
word-piece (`cdmae.models.heads.own`). As in DeepCT's code, the loss is the mean of the
squared errors over all words of the batch, here the global one. Negatives and teachers are not
read.

    E  examples        F  words of the passages of a batch        W  distinct words of the queries
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from cdmae.errors import InputError
from cdmae.finetuning.task import Data, FineTuning
from cdmae.models import packed, sequences
from cdmae.models.heads import own
from cdmae.models.ragged import BARE, Ragged, content, starts_of
from cdmae.tokens.words import hashes
from cdmae.training import setup
from cdmae.training.ranks import Ranks
from cdmae.training.setup import UNSCALED, Scaler

if TYPE_CHECKING:
    from cdmae.config.stages import Sparse
    from cdmae.models.checkpoint import Model

NUMBERS = ("loss", "entries", "target_entries", "spread")


@dataclass(frozen=True)
class Batch:
    """Passages, and the recall of each of their words."""

    sequences: Ragged
    targets: Ragged


@dataclass(frozen=True, kw_only=True)
class RecallTask(FineTuning):
    """The training of a retriever with `target: recall`.

    known: hashes of the words of all queries, ascending [W]. shares: see `recalls`.
    """

    known: np.ndarray
    shares: sparse.csr_array

    def draw(self, rows: np.ndarray, epoch: int) -> Batch:
        """Return the distinct positives of the given examples in an epoch."""
        positives = self.data.examples.positives
        turn = epoch % positives.lengths[rows]
        drawn = np.unique(positives.values[positives.starts[rows] + turn])
        read = sequences.texts(self.model, "passage", self.data.passages, drawn)
        found = words(read)
        column = np.searchsorted(self.known, found.values).clip(max=len(self.known) - 1)
        share = np.asarray(self.shares[np.repeat(drawn, found.lengths), column]).ravel()
        is_known = self.known[column] == found.values
        targets = np.where(is_known, share, 0).astype(np.float32)
        return Batch(read, replace(found, values=targets))

    def learn(self, batch: Batch, step: int, scaler: Scaler = UNSCALED) -> dict[str, Tensor]:
        """Add the gradient of a batch's scaled loss to the weights; return its numbers, 0-d.

        Gradient and numbers are this process's shares of the sums over all processes. entries:
        words with a positive score per passage, counted as often as they occur; target_entries:
        with a positive target. spread: the standard deviation of the scores of a chunk relative to
        their size.
        """
        network = self.model.network
        stage = self.stage
        group = self.group
        device = next(network.parameters()).device
        passages = len(batch.sequences)
        budget = stage.chunk * stage.passage_length
        totals = {name: torch.zeros((), dtype=torch.float64, device=device) for name in NUMBERS}
        cuts = sequences.chunks(batch.sequences.lengths, budget, group.rank, group.size)
        for chunk, rows in enumerate(cuts):
            generator = setup.generator(device, self.seed, "dropout", step, chunk, group.rank)
            pack = packed.pack(batch.sequences.take(rows), device)
            with setup.autocast(stage.precision, device):
                found, _ = own.scores(network, pack, generator=generator)
            wanted = torch.from_numpy(batch.targets.take(rows).values).to(found)
            loss = (found - wanted).square().sum() / len(batch.targets.values)
            scaler.scale(loss).backward()
            found = found.detach()
            size = found.square().mean().sqrt().clamp_min(torch.finfo(found.dtype).tiny)
            totals["loss"] += loss.detach()
            totals["entries"] += (found > 0).sum() / passages
            totals["target_entries"] += (wanted > 0).sum() / passages
            totals["spread"] += found.std(correction=0) / size * (len(rows) / passages)
        for weight in network.parameters():
            if weight.grad is None:  # of a process without passages
                weight.grad = torch.zeros_like(weight)
        return totals

    def note(self, numbers: dict[str, float], step: int) -> str:
        """Raise `InputError` if no word of a step's passages has a weight."""
        if numbers["entries"]:
            return ""
        raise InputError(
            f"training of {self.name} died: the weights of all passages of step {step:,} are 0; "
            f"lower learning_rate (now {self.stage.learning_rate:g}), or lengthen warmup_steps"
        )


def set_up(
    name: str, model: Model, data: Data, stage: Sparse, seed: int, group: Ranks
) -> RecallTask:
    """Set up the training of a retriever with `target: recall`."""
    asked = words(sequences.texts(model, "query", data.queries, data.examples.queries))
    known, columns = np.unique(asked.values, return_inverse=True)
    contained = sparse.csr_array(
        (np.ones(len(columns)), columns, asked.starts), shape=(len(asked), len(known))
    )
    shares = recalls(data.examples.positives, contained)
    return RecallTask(name, model, data, stage, seed, group, known=known, shares=shares)


def words(read: Ragged) -> Ragged:
    """Return the hash of each word of flagged texts, uint64 (`cdmae.tokens.words`)."""
    begins = read.flags & BARE == 0
    inside = content(read.starts)
    return Ragged(hashes(read.values[inside], begins[inside]), starts_of(begins)[read.starts])


def recalls(positives: Ragged, queries: sparse.csr_array) -> sparse.csr_array:
    """Return the recall of words in passages, float32 [P, W], up to the last relevant passage.

    positives: the passages that each query is relevant for; queries: the counts of their words, [E,
    W].
    """
    asked = np.repeat(np.arange(len(positives)), positives.lengths)
    counts = np.bincount(positives.values)
    pairs = (np.ones(len(asked)), (positives.values, asked))
    relevant = sparse.csr_array(pairs, shape=(len(counts), len(positives)))
    contains = sparse.csr_array(queries > 0, dtype=np.float64)
    means = sparse.diags_array(1 / np.maximum(counts, 1)) @ (relevant @ contains)
    return sparse.csr_array(means, dtype=np.float32)
