"""The reranker (section 3.4, stage 3), a cross-encoder of query and passage: s_ce = CE(q, d).

It is trained by the list-wise contrastive loss over each query's own group, without in-batch
negatives, and with a teacher by equation 11. A group is first scored without dropout. The model
then learns from only 1 / forward_factor of the group: the positive and the negatives with the best
scores (SimLM). The loss has no terms across queries. A chunk therefore consists of complete
queries, and the gradients of all chunks are added.

Shapes: `B` queries, `N` passages per query, `M` = N / forward_factor passages to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae.config.stages import Reranker
from cdmae.finetuning import losses
from cdmae.finetuning.task import Data, FineTuning, Inputs
from cdmae.finetuning.teacher import Teacher
from cdmae.models import architectures, sequences, transformer
from cdmae.models.packed import Packed, pack, put
from cdmae.models.ragged import Ragged
from cdmae.training import setup
from cdmae.training.ranks import Ranks
from cdmae.training.setup import UNSCALED, Scaler

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model


@dataclass(frozen=True)
class Batch:
    """The input of a step: B x N pairs, by group, the positive first.

    teacher: the teacher's scores for the groups, float32 [B, N], or None.
    """

    pairs: Ragged
    teacher: np.ndarray | None = None


@dataclass(frozen=True)
class RerankerTask(FineTuning):
    """The training of a reranker, which learns from judgments and, if given, a teacher."""

    teacher: Teacher | None = None

    def draw(self, rows: np.ndarray, epoch: int) -> Batch:
        """Return the batch of the given examples in an epoch."""
        drawn = self.data.examples.draw(rows, epoch)
        asked = self.data.examples.queries[rows]
        scores = self.teacher.scores(asked, drawn) if self.teacher else None
        return Batch(pairs(self.data, self.model, asked, drawn), scores)

    def learn(self, batch: Batch, step: int, scaler: Scaler = UNSCALED) -> dict[str, Tensor]:
        """Add the gradient of a batch's scaled loss to the weights; return its numbers, 0-d.

        Gradient and numbers are this process's shares of the sums over all processes. The loss is
        the mean over the B queries, regardless of chunks and processes. Dropout is drawn for (seed,
        step, chunk, process).
        """
        network = self.model.network
        stage = self.stage
        group = self.group
        device = next(network.parameters()).device
        pairs = batch.pairs
        queries = len(pairs) // stage.group
        own = np.arange(queries)[group.rank :: group.size]
        chosen = hardest(network, pairs, own, stage, device)  # [B, M]
        passes = 2 if stage.rdrop else 1
        per_chunk = max(1, stage.chunk // (passes * chosen.shape[1]))
        totals: dict[str, Tensor] = {}
        for chunk, begin in enumerate(range(0, len(chosen), per_chunk)):
            rows = chosen[begin : begin + per_chunk]
            packed = pack(pairs.take(np.tile(rows.ravel(), passes)), device)
            generator = setup.generator(device, self.seed, "dropout", step, chunk, group.rank)
            with setup.autocast(stage.precision, device):
                logits = scores(network, packed, generator=generator).view(passes, *rows.shape)
            teacher = None
            if batch.teacher is not None:
                teacher = put(batch.teacher.ravel()[rows], device)
            loss, numbers = objective(logits, stage, teacher)
            share = len(rows) / queries
            scaler.scale(loss * share).backward()
            for name, value in numbers.items():
                totals[name] = totals.get(name, 0) + value * share
        return totals


def set_up(
    name: str,
    model: Model,
    data: Data,
    stage: Reranker,
    inputs: Inputs,
    seed: int,
    group: Ranks,
) -> RerankerTask:
    """Set up the training of a reranker.

    Raises `InputError` for a teacher from which it would learn nothing.
    """
    taught = Teacher.read(inputs.scores, data.share) if inputs.scores else None
    if taught:
        taught.check_worth(data.examples, stage, name)
    return RerankerTask(name, model, data, stage, seed, group, teacher=taught)


def pairs(data: Data, model: Model, asked: np.ndarray, drawn: np.ndarray) -> Ragged:
    """Return the pairs of queries [B] and their groups [B, N], by group: B x N."""
    return sequences.pairs(
        data.queries,
        np.repeat(asked, drawn.shape[1]),
        data.passages,
        drawn.ravel(),
        model.lengths["max_length"],
        model.vocabulary,
    )


def hardest(
    network: nn.Module, pairs: Ragged, queries: np.ndarray, stage: Reranker, device: torch.device
) -> np.ndarray:
    """Return the pairs to learn from, int64 [B, M]: each positive, then its best negatives."""
    rows = np.arange(len(pairs)).reshape(-1, stage.group)[queries]
    if stage.forward_factor == 1:
        return rows
    budget = stage.chunk * stage.max_length
    logits = score_all(network, pairs.take(rows.ravel()), stage.precision, budget, device)
    logits = logits.reshape(rows.shape)
    logits[:, 0] = np.inf  # of the positive
    best = np.argsort(-logits, axis=1, kind="stable")[:, : stage.group // stage.forward_factor]
    return np.take_along_axis(rows, best, axis=1)


def objective(
    logits: Tensor, stage: Reranker, teacher: Tensor | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the list-wise loss, or with a teacher L_kl + alpha times it, and the step's numbers.

    logits: [1, B, M], or [2, B, M] with R-Drop, the scores of the same pairs under two dropout
    masks, over which L_kl is averaged. teacher: its scores [B, M].

    accuracy: the share of groups in which the positive is best; spread: the standard deviation of
    the scores within a group relative to their size, 0 if the model ignores its input.
    """
    listwise = losses.listwise(logits[0])
    loss = losses.rdrop(logits[0], logits[1], weight=stage.rdrop) if len(logits) == 2 else listwise
    values = logits[0].detach()
    taught = {}
    if teacher is not None:
        cooled = teacher / stage.teacher_temperature
        divergence = sum(losses.kl(each, cooled) for each in logits) / len(logits)
        loss = losses.distillation(divergence, loss, stage.alpha)
        taught = {"kl": divergence.detach()}
    numbers = {
        "loss": loss.detach(),
        "listwise": listwise.detach(),
        "accuracy": (values.argmax(-1) == 0).float().mean(),
        "spread": values.std(-1).mean() / values.abs().mean().clamp_min(1e-12),
        **taught,
    }
    return loss, numbers


# --- scores ---------------------------------------------------------------------------------------


def scores(
    network: nn.Module, packed: Packed, *, generator: torch.Generator | None = None
) -> Tensor:
    """Return s_ce of packed pairs, raw logits [n], from the classification head on [CLS].

    With a generator, dropout follows the model's config; without one, it is off. The head computes
    in float32 even under autocast: bfloat16 has 8 bits for a score, and half of the ten best
    passages would be tied.
    """
    head = architectures.classifier(network)
    states = transformer.vectors(network.base_model, packed, head.pooling, generator=generator)
    with torch.autocast(states.device.type, enabled=False):
        states = head.norm(
            head.activation(head.dense(transformer.drop(states, head.before, generator)))
        )
        return head.output(transformer.drop(states, head.between, generator)).squeeze(-1)


@torch.no_grad()
def score_all(
    network: nn.Module, pairs: Ragged, precision: str, budget: int, device: torch.device
) -> np.ndarray:
    """Score many pairs, float32 [n], in chunks of at most `budget` word-pieces sorted by length."""
    logits = np.empty(len(pairs), dtype=np.float32)
    for rows in sequences.chunks(pairs.lengths, budget):
        with setup.autocast(precision, device):
            logits[rows] = scores(network, pack(pairs.take(rows), device)).cpu().numpy()
    return logits
