"""Training of DeepCT: weights of words regressed on query term recall.

The target of word t in passage d is QTR(t, d) = |Q_{d,t}| / |Q_d|: the share of the passage's
training queries Q_d that contain t (Dai and Callan 2019, equation 1). A word is scored at its first
word-piece (`cdmae.models.heads.own`). As in DeepCT's code, the loss is the mean of the
squared errors over all words of the batch, here the global one. Negatives and teachers are not
read.

    E  examples        F  words of the passages of a batch        W  distinct words of the queries
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from cdmae.errors import InputError
from cdmae.finetuning.common import Data, Task
from cdmae.models import packed, sequences
from cdmae.models.heads import own
from cdmae.models.ragged import BARE, Ragged, content, starts_of
from cdmae.training import setup
from cdmae.training.ranks import Ranks
from cdmae.training.scaling import UNSCALED, Scaler

if TYPE_CHECKING:
    from cdmae.config.heads import Sparse
    from cdmae.models.checkpoint import Model

FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, the golden ratio of 2^64
COLUMNS = ["step", "loss", "entries", "target_entries", "spread", "skipped", "learning_rate"]


@dataclass(frozen=True)
class Batch:
    """Passages, and the recall of each of their words."""

    sequences: Ragged
    targets: Ragged


def task(
    model: Model,
    data: Data,
    stage: Sparse,
    teacher: Path | None,
    *,
    name: str,
    after: bool = False,
    in_batch_teacher: Path | None = None,
    seed: int,
    device: torch.device,
) -> Task:
    """Set up the training of a retriever with `target: recall`."""
    del teacher, after, in_batch_teacher, seed, device
    positives = data.examples.positives
    asked = words(sequences.texts(model, "query", data.queries, data.examples.queries))
    known, columns = np.unique(asked.values, return_inverse=True)
    contained = sparse.csr_array(
        (np.ones(len(columns)), columns, asked.starts), shape=(len(asked), len(known))
    )
    shares, rows = recalls(positives, contained)

    def batch(examples: np.ndarray, epoch: int) -> Batch:
        turn = epoch % positives.lengths[examples]
        drawn = np.unique(positives.values[positives.starts[examples] + turn])
        read = sequences.texts(model, "passage", data.passages, drawn)
        found = words(read)
        column = np.searchsorted(known, found.values).clip(max=len(known) - 1)
        row = np.repeat(rows[drawn], found.lengths)
        share = np.asarray(shares[row, column]).ravel()
        is_known = known[column] == found.values
        targets = np.where(is_known, share, 0).astype(np.float32)
        return Batch(read, replace(found, values=targets))

    def check(numbers: dict[str, float], step: int) -> str:
        if numbers["entries"]:
            return ""
        raise InputError(
            f"training of {name} died: the weights of all passages of step {step:,} are 0; lower "
            f"learning_rate (now {stage.learning_rate:g}), or lengthen warmup_steps"
        )

    return Task(stage, COLUMNS, batch, learn, check)


def words(read: Ragged) -> Ragged:
    """Return a 64-bit hash of each word of flagged texts: equal for equal word-pieces, uint64.

    Collisions are so rare that none is expected among a billion pairs of words.
    """
    inside = content(read.starts)
    pieces = read.values[inside].astype(np.uint64)
    begins = read.flags[inside] & BARE == 0
    first = np.flatnonzero(begins)
    position = np.arange(len(pieces)) - first[begins.cumsum() - 1]
    # a polynomial of the word-pieces, modulo 2^64
    power = np.full(position.max(initial=0) + 1, FACTOR).cumprod()
    keys = np.add.reduceat((pieces + np.uint64(1)) * power[position], first)
    return Ragged(keys, starts_of(read.flags & BARE == 0)[read.starts])


def recalls(positives: Ragged, queries: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the recall of words in passages, [p, W], and the row of each passage, [P].

    positives: the passages that each query is relevant for; queries: the counts of their words, [E,
    W]. Passages without a query have the row -1.
    """
    asked = np.repeat(np.arange(len(positives)), positives.lengths)
    passages, row_of = np.unique(positives.values, return_inverse=True)
    ones = np.ones(len(asked))
    relevant = sparse.csr_array((ones, (row_of, asked)), shape=(len(passages), len(positives)))
    contains = sparse.csr_array(queries > 0, dtype=np.float64)
    sums = (relevant @ contains).tocsr()
    counts = np.bincount(row_of)
    shares = sparse.csr_array(sparse.diags_array(1 / counts) @ sums, dtype=np.float32)
    rows = np.full(passages.max(initial=-1) + 1, -1)
    rows[passages] = np.arange(len(passages))
    return shares, rows


def learn(
    network: nn.Module,
    batch: Batch,
    stage: Sparse,
    group: Ranks,
    *,
    seed: int,
    step: int,
    scaler: Scaler = UNSCALED,
) -> dict[str, Tensor]:
    """Add the gradient of a batch's scaled loss to the weights; return the step's numbers, 0-d.

    Every process computes a share of the passages. entries: words with a positive score per
    passage, counted as often as they occur; target_entries: with a positive target.
    """
    device = next(network.parameters()).device
    mine = np.argsort(batch.sequences.lengths, kind="stable")[group.rank :: group.size]
    budget = stage.chunk * stage.passage_length
    chunks = sequences.chunks(batch.sequences.lengths[mine], budget)
    sums = [torch.zeros((), dtype=torch.float64, device=device) for _ in range(6)]
    for number, cut in enumerate(chunks):
        generator = setup.generator(device, seed, "dropout", step, number, group.rank)
        rows = mine[cut]
        pack = packed.pack(batch.sequences.take(rows), device)
        with setup.autocast(stage.precision, device):
            found, _ = own.scores(network, pack, generator=generator)
        wanted = torch.from_numpy(batch.targets.take(rows).values).to(found)
        loss = (found - wanted).square().sum() / len(batch.targets.values)
        scaler.scale(loss).backward()
        found = found.detach().double()
        parts = (
            loss.detach(), (found > 0).sum(), (wanted > 0).sum(), found.sum(),
            found.square().sum(), found.new_tensor(len(found)),
        )  # fmt: skip
        for total, part in zip(sums, parts, strict=True):
            total += part
    group.add_up([*_gradients(network), *sums])
    return _numbers(sums, len(batch.sequences))


def _gradients(network: nn.Module) -> list[Tensor]:
    """Return the gradients of all weights; a process without passages contributes zeros."""
    for weight in network.parameters():
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
    return [weight.grad for weight in network.parameters()]


def _numbers(sums: Sequence[Tensor], passages: int) -> dict[str, Tensor]:
    """Return the numbers of a step from sums over all processes.

    spread: the standard deviation of the scores relative to their size.
    """
    loss, positive, wanted, total, squares, count = sums
    mean = total / count
    deviation = (squares / count - mean.square()).clamp_min(0).sqrt()
    size = (squares / count).sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    return {
        "loss": loss,
        "entries": positive / passages,
        "target_entries": wanted / passages,
        "spread": deviation / size,
    }
