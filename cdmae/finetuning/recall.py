"""Training of DeepCT: weights of word-pieces regressed on query term recall.

The target of word-piece t in passage d is QTR(t, d) = |Q_{d,t}| / |Q_d|: the share of the passage's
training queries Q_d that contain t (Dai and Callan 2019, equation 1). A passage's loss is the sum
of the squared errors at its positions (equation 2). Here the loss is averaged over the passages of
the global batch. DeepCT compares words; here word-pieces are compared, and every position of a
word-piece has the word-piece's target. Negatives and teachers are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from cdmae.models.ragged import Ragged
from cdmae.training import setup
from cdmae.training.ranks import Ranks

if TYPE_CHECKING:
    from cdmae.config.heads import Sparse
    from cdmae.models.checkpoint import Model

COLUMNS = ["step", "loss", "entries", "target_entries", "spread", "learning_rate"]


@dataclass(frozen=True)
class Batch:
    """Passages and their targets: a matrix [B, V] with the recall of each word-piece."""

    sequences: Ragged
    targets: sparse.csr_array


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
    asked = sequences.texts(model, "query", data.queries, data.examples.queries)
    targets, rows = recalls(positives, own.counts(asked, model.network.config.vocab_size))

    def batch(examples: np.ndarray, epoch: int) -> Batch:
        turn = epoch % positives.lengths[examples]
        drawn = np.unique(positives.values[positives.starts[examples] + turn])
        read = sequences.texts(model, "passage", data.passages, drawn)
        return Batch(read, targets[rows[drawn]])

    def check(numbers: dict[str, float], step: int) -> str:
        if numbers["entries"]:
            return ""
        raise InputError(
            f"training of {name} died: the weights of all passages of step {step:,} are 0; lower "
            f"learning_rate (now {stage.learning_rate:g}), or lengthen warmup_steps"
        )

    return Task(stage, COLUMNS, batch, learn, check)


def recalls(positives: Ragged, queries: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the recall of word-pieces in passages, [p, V], and the row of each passage, [P].

    positives: the passages that each query is relevant for; queries: the counts of their
    word-pieces, [E, V]. Passages without a query have the row -1.
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
    network: nn.Module, batch: Batch, stage: Sparse, group: Ranks, *, seed: int, step: int
) -> dict[str, Tensor]:
    """Add the gradient of a batch's loss to the weights; return the step's numbers, 0-d.

    Every process computes a share of the passages. entries: word-pieces with a positive score per
    passage, counted at each position; target_entries: with a positive target.
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
            found, texts, pieces = own.scores(network, pack, generator=generator)
        wanted = torch.from_numpy(batch.targets[rows].toarray()).to(found)[texts, pieces]
        loss = (found - wanted).square().sum() / len(batch.sequences)
        loss.backward()
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
