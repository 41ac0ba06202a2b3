"""The loss of a batch of a retriever's training, from the vectors of its texts (section 3.4).

Shapes: `B` queries, `N` passages per query, `D` dimensions, `n` = B + B x N texts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from cdmae.config.stages import Retriever, Unified
from cdmae.finetuning import late, losses
from cdmae.finetuning.late import Texts
from cdmae.models import packed, sequences
from cdmae.models.heads import multi, table
from cdmae.models.ragged import Ragged, joined

if TYPE_CHECKING:
    from cdmae.finetuning.regulariser import Sparsity
    from cdmae.finetuning.task import Data
    from cdmae.models.checkpoint import Model

TAUGHT = {"kl": losses.kl, "margin_mse": losses.margin_mse}  # by the setting `distillation`


@dataclass
class Batch:
    """The input of a step: sequences of B queries, followed by their B x N passages.

    pieces: the word-piece of each vector of a multi-vector head; None if each text has one vector.
    excluded: bool [B, B x N], see `groups.Examples.excluded`; None without in-batch negatives.
    teacher: the teacher's scores for the groups, float32 [B, N], or None; a tensor on the device if
    the teacher is trained, too. in_batch: the second teacher's scores for the whole batch, float32
    [B, B x N], or None. pairs: the B x N pairs for a teacher that is trained, too, or None.
    weights: the weights of the queries from a table, float32 [B, V]; the sequences are then only of
    passages.
    """

    sequences: Ragged
    queries: int
    pieces: Ragged | None = None
    excluded: np.ndarray | None = None
    teacher: np.ndarray | Tensor | None = None
    in_batch: Tensor | None = None
    pairs: Ragged | None = None
    weights: Tensor | None = None

    @classmethod
    def of(cls, model: Model, data: Data, asked: np.ndarray, drawn: np.ndarray) -> Batch:
        """Read the texts of queries [B] and of their groups [B, N]."""
        queries = sequences.texts(model, "query", data.queries, asked)
        passages = sequences.texts(model, "passage", data.passages, drawn.ravel())
        if model.table is not None:
            weights = table.weigh(queries, model.table).toarray()
            return cls(passages, len(asked), weights=torch.from_numpy(weights))
        read = joined(queries, passages)
        pieces = multi.scored(read, model.network) if model.head == "multi" else None
        return cls(read, len(asked), pieces)

    @property
    def rows(self) -> Ragged:
        """Return the rows of each sequence's vectors, among the vectors of all sequences."""
        count = len(self.sequences)
        starts = np.arange(count + 1) if self.pieces is None else self.pieces.starts
        return Ragged(np.arange(starts[-1]), starts)

    def texts(self, vectors: Tensor) -> Tensor | Texts:
        """Return the vectors of all texts, [n, D] or ragged, from those of the sequences."""
        if self.pieces is not None:
            return Texts(vectors, self.pieces)
        return vectors if self.weights is None else torch.cat([self.weights.to(vectors), vectors])


def objective(
    vectors: Tensor | Texts,
    batch: Batch,
    stage: Retriever,
    sparsity: Sparsity | None = None,
    step: int = 0,
    judged: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return a batch's loss, equation 10 or with a teacher L_kl + alpha L_cont, and its numbers.

    With `distillation: margin_mse`, Margin-MSE takes the place of L_kl; with none, the loss is
    equation 10 also with a teacher. With a `passage_weight` w,
    (1 - w) L_cont + w times the passage-centric loss takes the place of L_cont. A second teacher
    adds in_batch_weight times the squared error of the margins in the whole batch. A teacher that
    learns, too, adds its own list-wise loss, and a sparse head its regulariser.

    The student's scores are divided by the stage's temperature, the teacher's scores by its
    teacher_temperature. The losses of both heads of a unified retriever are added up.

    vectors: [n, D], first of the queries, then of the passages; or of all their word-pieces.
    judged: the scores [B x N, 1] by the teacher that learns, too.

    accuracy: the share of groups in which the positive scores best; teacher_accuracy: by the
    teacher that learns, too. spread: the standard deviation of the passages' vectors relative to
    their size; it is 0 if all vectors are equal.
    """
    if judged is not None:
        batch = replace(batch, teacher=judged.view(batch.queries, -1))
    if isinstance(stage, Unified):
        loss, numbers = _of_both_heads(vectors, batch, stage, sparsity.words)
    else:
        loss, numbers = _of_head(vectors, batch, stage)
    if judged is not None:
        own = losses.listwise(batch.teacher)
        loss = loss + own
        numbers["teacher_listwise"] = own
        numbers["teacher_accuracy"] = _accuracy(batch.teacher)
    if sparsity:
        weights = vectors[:, : sparsity.words]
        queries = weights[: batch.queries]
        penalty, more = sparsity.penalty(queries, weights[batch.queries :], step)
        loss = loss + penalty
        numbers |= more
    return loss, numbers


def _of_both_heads(
    vectors: Tensor, batch: Batch, stage: Unified, words: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the sum of the losses of both heads; words: the number V of a text's weights."""
    loss, numbers = _of_head(vectors[:, :words], batch, replace(stage, passage_weight=0.0))
    cooled = replace(stage, temperature=stage.dense_temperature)
    of_dense, dense = _of_head(vectors[:, words:], batch, cooled)
    numbers["dense_accuracy"] = dense["accuracy"]
    numbers["spread"] = torch.minimum(numbers["spread"], dense["spread"])  # if either collapses
    for key in {"contrastive", "in_batch", stage.distillation} & numbers.keys():
        numbers[key] = numbers[key] + dense[key]
    return loss + of_dense, numbers


def _of_head(
    vectors: Tensor | Texts, batch: Batch, stage: Retriever
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss and the numbers of `objective` for the vectors of one head."""
    every, scores, passages = _scores(vectors, batch.queries, stage)
    excluded = None if batch.excluded is None else packed.put(batch.excluded, every.device)
    if stage.in_batch:
        contrastive = losses.in_batch_loss(every, excluded)
    else:
        contrastive = losses.listwise(scores)
    if stage.passage_weight:
        groups = passages.unflatten(0, (batch.queries, -1))  # [B, N, D]
        queries = vectors[: batch.queries]
        centric = losses.passage_centric(queries, groups, stage.temperature, excluded)
        contrastive = torch.lerp(contrastive, centric, stage.passage_weight)
    flat = passages.detach()
    length = flat.norm(dim=1).mean().clamp_min(torch.finfo(flat.dtype).tiny)
    numbers = {
        "contrastive": contrastive,
        "accuracy": _accuracy(scores),
        "spread": flat.std(0).norm() / length,
    }
    loss = contrastive
    if batch.teacher is not None and stage.distillation != "none":
        teacher = torch.as_tensor(batch.teacher, device=scores.device) / stage.teacher_temperature
        taught = TAUGHT[stage.distillation](scores, teacher)
        numbers[stage.distillation] = taught
        loss = losses.distillation(taught, contrastive, stage.alpha)
    if batch.in_batch is not None:
        in_batch = losses.in_batch_margin_mse(every, batch.in_batch)
        numbers["in_batch"] = in_batch
        loss = loss + stage.in_batch_weight * in_batch
    return loss, numbers


def _scores(vectors: Tensor | Texts, count: int, stage: Retriever) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores of the whole batch [B, B x N], of the groups [B, N], and passages' vectors.

    count: the number of queries B.
    """
    if isinstance(vectors, Texts):
        queries, passages = vectors.divided(count)
        every = late.scores(queries, passages, stage.match) / stage.temperature
        of_pieces = packed.put(passages.pieces.values >= 0, every.device)  # without rows of [CLS]
        own = every.view(count, count, -1).diagonal().T
        return every, own, passages.vectors[of_pieces]
    queries = vectors[:count] / stage.temperature
    passages = vectors[count:]
    own = losses.group_scores(queries, passages.unflatten(0, (count, -1)))
    return queries @ passages.T, own, passages


def _accuracy(scores: Tensor) -> Tensor:
    """Return the share of groups, [B, N], in which the positive scores best."""
    return (scores.argmax(-1) == 0).float().mean()
