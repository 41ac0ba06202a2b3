"""Retriever training in all three stages (section 3.4): one encoder, one vector per text.

A head (`cdmae.models.heads`) makes the vectors: D is the width of the encoder for the dense head,
and the number of word-pieces for the sparse head. The sparse head adds a regulariser to the loss.
The multi-vector head makes a vector per word-piece. A unified retriever has a dense and a sparse
head; both losses are added up (`cdmae.finetuning.objectives`).

The settings fix the global batch, B queries with N passages each. It is encoded in chunks sorted
by length, with gradient caching (`cdmae.finetuning.caching`). Memory depends on the chunk's size.
Loss and gradient equal the values without chunks. The last chunk has the longest sequences. A batch
that fits into one chunk costs no more than without caching.

Shapes: `B` queries, `N` passages per query, `D` dimensions, `n` = B + B x N sequences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae.config.heads import AnyRetriever, Regularised, Retriever, Unified
from cdmae.finetuning import joint, recall, task
from cdmae.finetuning.caching import Cached, cached_backward
from cdmae.finetuning.groups import Balance
from cdmae.finetuning.joint import JointTeacher
from cdmae.finetuning.late import Texts
from cdmae.finetuning.objectives import Batch, Objective
from cdmae.finetuning.regulariser import Sparsity
from cdmae.finetuning.scoring import SecondTeacher, all_scores
from cdmae.finetuning.task import Data, FineTuning, Inputs, parameters, steps_of
from cdmae.finetuning.teacher import Teacher
from cdmae.log import say
from cdmae.models import checkpoint, heads, packed, sequences
from cdmae.models.heads import sparse, table
from cdmae.models.ragged import indices
from cdmae.training import setup
from cdmae.training.loop import COLLAPSED
from cdmae.training.ranks import Ranks
from cdmae.training.setup import UNSCALED, Scaler

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model

# shares of the loss of guessing above which a training of at least so many steps has learnt nothing
GUESSED = 0.98
LEAST_STEPS = 50
# columns of the curve of a sparse head
SPARSE = ("penalty", "query_entries", "passage_entries", "flops")
ALONE = Ranks()


@dataclass(frozen=True)
class Teachers:
    """The teachers of a retriever, if it has any.

    scores: of the groups. second: of whole batches. joint: trained together with the retriever.
    """

    scores: Teacher | None = None
    second: SecondTeacher | None = None
    joint: JointTeacher | None = None


@dataclass(frozen=True)
class RetrieverTask(FineTuning):
    """The training of a retriever, which learns from judgments and, if given, teachers."""

    teachers: Teachers = Teachers()
    sparsity: Sparsity | None = None

    @property
    def network(self) -> nn.Module:
        """Return the weights of the retriever, and of a teacher that learns, too."""
        if not self.teachers.joint:
            return self.model.network
        return nn.ModuleList([self.model.network, self.teachers.joint.model.network])

    @property
    def columns(self) -> list[str]:
        """Return the columns of the curve."""
        distilled = self.teachers.scores and self.stage.distillation != "none"
        return [
            "step",
            "loss",
            "contrastive",
            *([self.stage.distillation] if distilled or self.teachers.joint else []),
            *(["in_batch"] if self.teachers.second else []),
            *(joint.COLUMNS if self.teachers.joint else []),
            *(SPARSE if self.sparsity else []),
            "accuracy",
            *(["dense_accuracy"] if isinstance(self.stage, Unified) else []),
            "spread",
            "learning_rate",
        ]

    def draw(self, rows: np.ndarray, epoch: int) -> Batch:
        """Return the batch of the given examples in an epoch."""
        return batch(self.data, rows, epoch, self.model, self.stage, self.teachers)

    def learn(self, batch: Batch, step: int, scaler: Scaler = UNSCALED) -> dict[str, Tensor]:
        """Add the gradient of a batch; see `learn`."""
        objective = Objective(self.stage, self.sparsity, self.teachers.joint)
        network = self.model.network
        return learn(
            network, batch, objective, self.group, seed=self.seed, step=step, scaler=scaler
        )

    def note(self, numbers: dict[str, float], step: int) -> str:
        """Return a warning about vectors that are saturated, or a training that learnt nothing."""
        note = self.sparsity.check(numbers, step) if self.sparsity else ""
        ended = step == self.schedule.last >= LEAST_STEPS
        return note or (guesses(numbers, self.stage) if ended else "")

    def write(self, folder: Path, encoder: Path, seconds: float, notes: list[str]) -> None:
        """Write the retriever, and a teacher that has learnt, too, into a subfolder."""
        super().write(folder, encoder, seconds, notes)
        if self.teachers.joint:
            other = self.teachers.joint.model
            about = self.about(encoder, seconds, notes) | {"parameters": parameters(other)}
            (folder / "teacher").mkdir()
            checkpoint.save(folder / "teacher", other, encoder, about)


def retriever_task(
    name: str,
    model: Model,
    data: Data,
    stage: AnyRetriever,
    inputs: Inputs,
    seed: int,
    group: Ranks = ALONE,
) -> FineTuning:
    """Set up the training of a retriever; `stage` may then have a temperature from the data.

    Raises `InputError` for teachers from which it would learn nothing.
    """
    if stage.target == "recall":
        return recall.recall_task(name, model, data, stage, seed, group)
    device = group.device
    if stage.query_weights == "idf":
        words = sparse.width(model.network)
        found = data.share(
            "idf", lambda: {"table": table.idf(data.passages, model.vocabulary, words)}
        )
        model = replace(model, table=np.array(found["table"]))
    taught = Teacher.read(inputs.scores, data.share) if inputs.scores else None
    if taught and stage.margin_bins:
        balance = Balance(taught.scores, stage.margin_bins)
        data = replace(data, examples=replace(data.examples, balance=balance))
    sparsity = None
    if isinstance(stage, Regularised):
        steps = steps_of(stage, len(data.examples), name)
        sparsity = Sparsity(stage, name, steps, sparse.width(model.network))
    if not stage.temperature:
        rows = data.examples.order(0, stage.queries)[: stage.queries]
        first = batch(data, rows, 0, model, stage)
        spread = spread_of_scores(model, first, stage, seed, device)
        say(f"{name}: scores are divided by {spread:g}, their spread in the first batch")
        stage = replace(stage, temperature=spread)
    if taught and stage.distillation != "none":
        taught.check_worth(data.examples, stage, name)
    second = None
    if inputs.in_batch_teacher:
        second = SecondTeacher.read(inputs.in_batch_teacher, data, stage, device)
    together = None
    if inputs.joint_teacher:
        together = JointTeacher.read(inputs.joint_teacher, data, device)
    teachers = Teachers(taught, second, together)
    return RetrieverTask(
        name, model, data, stage, seed, group, teachers=teachers, sparsity=sparsity
    )


def train(
    *,
    name: str,
    settings: AnyRetriever,
    files: Inputs,
    seed: int,
    threads: int = 1,
    state: Path,
    output: Path,
) -> None:
    """Train the retriever `name` in one stage, see `cdmae.finetuning.task.train`."""
    task.train(retriever_task, name, settings, files, seed, threads, state, output)


def spread_of_scores(
    model: Model, batch: Batch, stage: Retriever, seed: int, device: torch.device
) -> float:
    """Return the mean over queries of the standard deviation of a batch's scores q . d [B x N].

    A [CLS] vector is the output of a LayerNorm. Its length is about the square root of its width D,
    and the standard deviation of dot products is ten or more. A softmax over them is nearly 0 or 1,
    and the loss is several times the loss of guessing. At the learning rates that small networks
    need, the first steps then undo the pre-training.

    Dropout is active as in training. For random weights it causes most of the spread, because their
    vectors are nearly equal. The result is rounded to three digits: a training that resumes on
    another machine then computes the same number. It is 1 if the spread is only rounding error.
    """
    scores = all_scores(model, batch, device, stage.chunk * stage.passage_length, seed)
    spread = scores.std(1, correction=0).mean().item()
    return float(f"{spread:.3g}") if spread > COLLAPSED * scores.abs().mean().item() else 1.0


def guesses(numbers: dict[str, float], stage: Retriever) -> str:
    """Return a warning if the contrastive loss of the last step is that of guessing."""
    candidates = stage.group * (stage.queries if stage.in_batch else 1)
    heads = 2 if isinstance(stage, Unified) else 1
    guess = heads * math.log(candidates)
    loss = numbers["contrastive"]
    if loss < GUESSED * guess:
        return ""
    return (
        f"the contrastive loss of the last step is {loss:.3g}, and guessing has {guess:.3g}: the "
        f"model has learnt nothing; lower learning_rate (now {stage.learning_rate:g}) or raise "
        f"temperature (now {stage.temperature:g})"
    )


# --- a step's data --------------------------------------------------------------------------------


def batch(
    data: Data,
    rows: np.ndarray,
    epoch: int,
    model: Model,
    stage: Retriever,
    teachers: Teachers = Teachers(),
) -> Batch:
    """Return the batch of the given examples in an epoch."""
    drawn = data.examples.draw(rows, epoch)  # [B, N]
    asked = data.examples.queries[rows]
    excluded = data.examples.excluded(rows, drawn) if stage.in_batch else None
    teacher = teachers.scores
    if teacher and stage.denoise:
        own = np.arange(len(rows))
        false = teacher.preferred(asked, drawn, stage)
        excluded.reshape(len(rows), len(rows), -1)[own, own] |= false
    return Batch.of(
        model,
        data,
        asked,
        drawn,
        excluded=excluded,
        teacher=teacher.scores(asked, drawn) if teacher else None,
        in_batch=teachers.second.scores(asked, drawn) if teachers.second else None,
        pairs=teachers.joint.pairs(asked, drawn) if teachers.joint else None,
    )


# --- a step's gradient ----------------------------------------------------------------------------


def learn(
    network: nn.Module,
    batch: Batch,
    objective: Objective,
    group: Ranks,
    *,
    seed: int,
    step: int,
    scaler: Scaler = UNSCALED,
) -> dict[str, Tensor]:
    """Add the gradient of the batch's scaled loss to the weights; return the step's numbers, 0-d.

    Every process encodes a share of the sequences, of all lengths, and computes the loss of the
    whole batch: its numbers are divided by the number of processes. Dropout is drawn for (seed,
    step, chunk, process): both passes over a chunk use the same mask.
    """
    device = next(network.parameters()).device
    stage = objective.stage
    head = heads.of(stage.head)
    budget = stage.chunk * stage.passage_length
    cuts = sequences.chunks(batch.sequences.lengths, budget, group.rank, group.size)
    packs = [packed.pack(batch.sequences.take(rows), device) for rows in cuts]
    pieces = batch.pieces(network)
    starts = pieces.starts if pieces is not None else np.arange(len(batch.sequences) + 1)
    memories: list[dict[str, Tensor]] = [{} for _ in cuts]

    def encode(chunk: int) -> Tensor:
        generator = setup.generator(device, seed, "dropout", step, chunk, group.rank)
        with setup.autocast(stage.precision, device):
            pack = packs[chunk]
            memory = memories[chunk]
            return head.vectors(network, pack, stage, generator=generator, memory=memory)

    def loss(vectors: Tensor, *judged: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        texts = batch.whole(vectors) if pieces is None else Texts(vectors, pieces)
        value, numbers = objective(texts, batch, step, *judged)
        shares = {"loss": value, **numbers}
        return value, {name: number.detach() / group.size for name, number in shares.items()}

    rows = [packed.put(indices(starts[cut], starts[cut + 1] - starts[cut]), device) for cut in cuts]
    inputs = [Cached(encode, rows, int(starts[-1]))]
    if objective.joint:
        scores = objective.joint.scores(batch.pairs, stage, group, device, seed=seed, step=step)
        inputs.append(scores)
    return cached_backward(inputs, loss, group, scaler)
