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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae.config.heads import Multi, Regularised, Retriever, Sparse, Unified
from cdmae.errors import InputError
from cdmae.finetuning import joint, recall
from cdmae.finetuning.caching import Cached, cached_backward
from cdmae.finetuning.common import Data, Task, steps_of, trainer
from cdmae.finetuning.groups import Balance
from cdmae.finetuning.joint import JointTeacher
from cdmae.finetuning.late import Texts
from cdmae.finetuning.objectives import Batch, late_objective, objective
from cdmae.finetuning.regulariser import Sparsity
from cdmae.finetuning.scoring import SecondTeacher, all_scores
from cdmae.finetuning.teacher import Teacher
from cdmae.log import say
from cdmae.models import heads, packed, sequences
from cdmae.models.heads import sparse
from cdmae.models.ragged import indices, joined
from cdmae.training import setup
from cdmae.training.loop import COLLAPSED
from cdmae.training.ranks import Ranks
from cdmae.training.scaling import UNSCALED, Scaler

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model

# multiple of the temperature; if scores spread more, one candidate gets nearly all of a softmax
SATURATED = 5.0
# shares of the loss of guessing above which a training of at least so many steps has learnt nothing
GUESSED = 0.98
LEAST_STEPS = 50
# columns of the curve of a sparse head
SPARSE = ("penalty", "query_entries", "passage_entries", "flops")
SOME = 512  # groups by which a teacher is compared with its student
# a higher learning rate causes a warning: published retrievers without a temperature use 5e-5
HIGH = 1e-4


def task(
    model: Model,
    data: Data,
    stage: Retriever,
    teacher: Path | None,
    *,
    name: str,
    after: bool = False,
    in_batch_teacher: Path | None = None,
    joint_teacher: Path | None = None,
    seed: int,
    device: torch.device,
) -> Task:
    """Set up the training of a retriever, which learns from judgments and, if given, teachers."""
    if isinstance(stage, Sparse) and stage.target == "recall":
        return recall.task(model, data, stage, teacher, name=name, seed=seed, device=device)
    sparsity = None
    taught = Teacher.read(teacher, data.shared) if teacher else None
    if taught and stage.margin_bins:
        balance = Balance(taught.scores, stage.margin_bins)
        data = replace(data, examples=replace(data.examples, balance=balance))
    check_prefixes(stage, model.network.config.hidden_size, name)
    steps = steps_of(stage, len(data.examples), name)
    if isinstance(stage, Regularised):
        sparsity = Sparsity(stage, name, steps, sparse.width(model.network))
    first = batch(data, data.examples.order(0, stage.queries)[: stage.queries], 0, model, stage)
    spread = spread_of_scores(model, first, stage, seed, device)
    stage, notes = calibrated(stage, spread, name)
    if taught:
        taught.check(data.examples, math.ceil(stage.epochs))
        if stage.distillation != "none":
            taught.check_worth(data.examples, stage.alpha, name, stage.teacher_temperature)
        if stage.denoise:
            taught.check_denoised(data.examples, stage, name)
        if after and stage.weaker_teacher == "stop":
            queries, passages, scores = some_groups(model, data, stage, device)
            taught.check_stronger(queries, passages, scores, name)
    second = SecondTeacher.read(in_batch_teacher, data, stage, device) if in_batch_teacher else None
    together = JointTeacher.read(joint_teacher, data, device) if joint_teacher else None
    distilled = together or (taught and stage.distillation != "none")

    def check(numbers: dict[str, float], step: int) -> str:
        if isinstance(stage, Multi):
            check_alive(numbers, step, stage, name)
        note = sparsity.check(numbers, step) if sparsity else ""
        return note or (guesses(numbers, stage) if step == steps >= LEAST_STEPS else "")

    columns = [
        "step",
        "loss",
        "contrastive",
        *([stage.distillation] if distilled else []),
        *(["in_batch"] if second else []),
        *(joint.COLUMNS if together else []),
        *(SPARSE if sparsity else []),
        "accuracy",
        *(["dense_accuracy"] if isinstance(stage, Unified) else []),
        "spread",
        "skipped",
        "learning_rate",
    ]
    return Task(
        stage,
        columns,
        lambda rows, epoch: batch(data, rows, epoch, model, stage, taught, second, together),
        partial(learn, sparsity=sparsity, together=together),
        check,
        notes,
        {"teacher": together.model} if together else {},
    )


train = trainer(task)


def spread_of_scores(
    model: Model, batch: Batch, stage: Retriever, seed: int, device: torch.device
) -> float:
    """Return the mean over queries of the standard deviation of a batch's scores q . d [B x N].

    Dropout is active as in training. For random weights it causes most of the spread, because their
    vectors are nearly equal. The result is rounded to three digits: a training that resumes on
    another machine then computes the same number. It is 0 if the spread is only rounding error.
    """
    scores = all_scores(model, batch, device, stage.chunk * stage.passage_length, seed)
    spread = scores.std(1, correction=0).mean().item()
    return float(f"{spread:.3g}") if spread > COLLAPSED * scores.abs().mean().item() else 0.0


def some_groups(
    model: Model, data: Data, stage: Retriever, device: torch.device
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries, passages and scores of about `SOME` groups: [E'], [E', N], [E', N].

    The scores are those of the initial weights, without dropout.
    """
    order = data.examples.order(0, stage.queries)
    batches = min(len(order) // stage.queries, math.ceil(SOME / stage.queries))
    found = []
    for rows in order[: batches * stage.queries].reshape(batches, -1):
        drawn = batch(data, rows, 0, model, stage)
        every = all_scores(model, drawn, device, stage.chunk * stage.passage_length)
        found.append(every.view(len(rows), len(rows), -1).diagonal().T.cpu().numpy())
    rows = order[: batches * stage.queries]
    return data.examples.queries[rows], data.examples.draw(rows, 0), np.concatenate(found)


def check_alive(numbers: dict[str, float], step: int, stage: Retriever, name: str) -> None:
    """Raise `InputError` if all vectors of a step's passages are equal, also during the warm-up."""
    if numbers["spread"] < COLLAPSED:
        raise InputError(
            f"training of {name} died: all vectors of the passages of step {step:,} are equal; "
            f"lower learning_rate (now {stage.learning_rate:g}) or raise temperature (now "
            f"{stage.temperature:g})"
        )


def guesses(numbers: dict[str, float], stage: Retriever) -> str:
    """Return a warning if the contrastive loss of the last step is that of guessing."""
    group = math.log(stage.group)
    guess = math.log(stage.queries) + group if stage.in_batch else group
    sparse_guess = guess  # the sparse half of a unified retriever has no passage-centric loss
    guess += stage.passage_weight * (group - guess)
    if isinstance(stage, Unified):
        guess += sparse_guess
    loss = numbers["contrastive"]
    if loss < GUESSED * guess:
        return ""
    return (
        f"the contrastive loss of the last step is {loss:.3g}, and guessing has {guess:.3g}: the "
        f"model has learnt nothing; lower learning_rate (now {stage.learning_rate:g}) or raise "
        f"temperature (now {stage.temperature:g})"
    )


def check_prefixes(stage: Retriever, width: int, name: str) -> None:
    """Raise `InputError` for a prefix that is not shorter than the vectors, of `width` numbers."""
    if max(stage.prefixes, default=0) >= width:
        raise InputError(
            f"prefixes of {name} is {list(stage.prefixes)}, but its vectors have {width} numbers; "
            f"allowed: widths below {width}"
        )


def calibrated(stage: Retriever, spread: float, name: str) -> tuple[Retriever, list[str]]:
    """Return the stage with a numeric temperature, and notes on the scores of the initial weights.

    A [CLS] vector is the output of a LayerNorm. Its length is about the square root of its width D,
    and the standard deviation of dot products is ten or more. A softmax over them is nearly 0 or 1,
    and the loss is several times the loss of guessing. At the learning rates that small networks
    need, the first steps then undo the pre-training.
    """
    if not stage.temperature and spread:
        say(f"{name}: scores are divided by {spread:g}, their spread in the first batch")
        return replace(stage, temperature=spread), []
    stage = replace(stage, temperature=stage.temperature or 1.0)
    notes = []
    if not spread:
        notes = [
            "the initial weights map all texts of the first batch to one vector: they carry no "
            "information"
        ]
    elif spread > SATURATED * stage.temperature and stage.learning_rate > HIGH:
        remedy = "temperature: 0 divides scores by their standard deviation"
        if isinstance(stage, Regularised):  # which has no temperature 0
            remedy = (
                "lower learning_rate, or raise temperature towards the standard deviation and "
                "lower query_flops and passage_flops with it"
            )
        notes = [
            f"the scores of the initial weights have a standard deviation of {spread:g} in the "
            f"first batch, {spread / stage.temperature:.0f} times the temperature: a learning rate "
            f"of {stage.learning_rate:g} may undo the pre-training ({remedy})"
        ]
    for note in notes:
        say(f"{name}: {note}")
    return stage, notes


# --- a step's data --------------------------------------------------------------------------------


def batch(
    data: Data,
    rows: np.ndarray,
    epoch: int,
    model: Model,
    stage: Retriever,
    teacher: Teacher | None = None,
    second: SecondTeacher | None = None,
    together: JointTeacher | None = None,
) -> Batch:
    """Return the batch of the given examples in an epoch."""
    drawn = data.examples.draw(rows, epoch)  # [B, N]
    asked = data.examples.queries[rows]
    excluded = data.examples.excluded(rows, drawn) if stage.in_batch else None
    if teacher and stage.denoise:
        own = np.arange(len(rows))
        false = teacher.preferred(asked, drawn, stage)
        excluded.reshape(len(rows), len(rows), -1)[own, own] |= false
    queries = sequences.texts(model, "query", data.queries, asked)
    passages = sequences.texts(model, "passage", data.passages, drawn.ravel())
    return Batch(
        joined(queries, passages),
        len(rows),
        excluded,
        teacher.scores(asked, drawn) if teacher else None,
        second.scores(asked, drawn) if second else None,
        together.pairs(asked, drawn) if together else None,
    )


# --- a step's gradient ----------------------------------------------------------------------------


def learn(
    network: nn.Module,
    batch: Batch,
    stage: Retriever,
    group: Ranks,
    *,
    seed: int,
    step: int,
    scaler: Scaler = UNSCALED,
    sparsity: Sparsity | None = None,
    together: JointTeacher | None = None,
) -> dict[str, Tensor]:
    """Add the gradient of the batch's scaled loss to the weights; return the step's numbers, 0-d.

    Every process encodes a share of the sequences, of all lengths, and computes the loss of the
    whole batch. Dropout is drawn for (seed, step, chunk, process): both passes over a chunk use
    the same mask. sparsity: the regulariser of a sparse head, which is added to the loss. together:
    the teacher that learns, too; its gradient is added to its weights.
    """
    device = next(network.parameters()).device
    head = heads.of(stage.head)
    mine = np.argsort(batch.sequences.lengths, kind="stable")[group.rank :: group.size]
    budget = stage.chunk * stage.passage_length
    cuts = [mine[rows] for rows in sequences.chunks(batch.sequences.lengths[mine], budget)]
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

    def loss(vectors: Tensor, *scored: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        known = batch
        if scored:  # by the teacher that learns, too
            known = replace(batch, teacher=scored[0].view(batch.queries, -1))
        if pieces is not None:
            value, numbers = late_objective(Texts(vectors, pieces), known, stage)
        else:
            words = sparsity.words if sparsity else 0
            value, numbers = objective(vectors, known, stage, words)
        if scored:
            own, more = joint.listwise(known.teacher)
            value = value + own
            numbers |= more
        if sparsity:
            weights = vectors[:, :words]
            penalty, more = sparsity.penalty(
                weights[: batch.queries], weights[batch.queries :], step
            )
            value = value + penalty
            numbers |= more
        shown = {name: number.detach() for name, number in numbers.items()}
        return value, {"loss": value.detach(), **shown}

    rows = [packed.put(indices(starts[cut], starts[cut + 1] - starts[cut]), device) for cut in cuts]
    inputs = [Cached(encode, rows, int(starts[-1]))]
    parameters = list(network.parameters())
    if together:
        inputs.append(together.scores(batch.pairs, stage, group, device, seed=seed, step=step))
        parameters += together.model.network.parameters()
    numbers = cached_backward(inputs, loss, group, scaler)
    group.add_up([weight.grad for weight in parameters])
    return numbers
