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
from cdmae.errors import InputError
from cdmae.finetuning import joint, recall
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
from cdmae.models.heads import sparse
from cdmae.models.ragged import indices, joined
from cdmae.training import loop, ranks, setup
from cdmae.training import state as states
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
ALONE = Ranks()


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
    """Train the retriever `name` and write it to `output`.

    A killed training resumes from the state folder; on the CPU its results are bit-identical.
    """
    device = setup.set_up(threads)
    model = files.model(settings, seed)
    with ranks.joined(device) as group, states.opened(state, name, group) as saved:
        group.check_batch("queries", settings.queries)
        shared = saved.shared
        data = Data.read(files, settings, model, seed=seed, threads=threads, shared=shared)
        if settings.target == "recall":
            training = recall.recall_task(name, model, data, settings, seed, group)
        else:
            training = retriever_task(name, model, data, settings, files, seed, group)
        training.network.to(device)
        seconds, notes = loop.train(training, saved)
        if group.first:
            with saved.finish(output) as folder:
                training.write(folder, files.encoder, seconds, notes)


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
            "skipped",
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
    stage: Retriever,
    inputs: Inputs,
    seed: int,
    group: Ranks = ALONE,
) -> RetrieverTask:
    """Set up the training of a retriever; `stage` may then have a temperature from the data.

    Raises `InputError` for teachers from which it would learn nothing.
    """
    device = group.device
    taught = Teacher.read(inputs.scores, data.shared) if inputs.scores else None
    if taught and stage.margin_bins:
        balance = Balance(taught.scores, stage.margin_bins)
        data = replace(data, examples=replace(data.examples, balance=balance))
    check_prefixes(stage, model.network.config.hidden_size, name)
    sparsity = None
    if isinstance(stage, Regularised):
        steps = steps_of(stage, len(data.examples), name)
        sparsity = Sparsity(stage, name, steps, sparse.width(model.network))
    first = batch(data, data.examples.order(0, stage.queries)[: stage.queries], 0, model, stage)
    spread = spread_of_scores(model, first, stage, seed, device)
    stage, notes = calibrated(stage, spread, name)
    if taught:
        taught.check(data.examples, math.ceil(stage.epochs))
        if stage.distillation != "none":
            taught.check_worth(data.examples, stage, name)
        if stage.denoise:
            taught.check_denoised(data.examples, stage, name)
        if inputs.after and stage.weaker_teacher == "stop":
            queries, passages, scores = some_groups(model, data, stage, device)
            taught.check_stronger(queries, passages, scores, name)
    second = None
    if inputs.in_batch_teacher:
        second = SecondTeacher.read(inputs.in_batch_teacher, data, stage, device)
    together = None
    if inputs.joint_teacher:
        together = JointTeacher.read(inputs.joint_teacher, data, device)
    teachers = Teachers(taught, second, together)
    return RetrieverTask(
        name, model, data, stage, seed, group, tuple(notes), teachers=teachers, sparsity=sparsity
    )


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
            f"expected widths below {width}"
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
        notes = [
            f"the first batch's scores have a standard deviation of {spread:g}, "
            f"{spread / stage.temperature:.0f} times the temperature: a learning rate of "
            f"{stage.learning_rate:g} may undo the pre-training; lower it, or raise temperature"
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
    queries = sequences.texts(model, "query", data.queries, asked)
    passages = sequences.texts(model, "passage", data.passages, drawn.ravel())
    return Batch(
        joined(queries, passages),
        len(rows),
        excluded,
        teacher.scores(asked, drawn) if teacher else None,
        teachers.second.scores(asked, drawn) if teachers.second else None,
        teachers.joint.pairs(asked, drawn) if teachers.joint else None,
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
        texts = vectors if pieces is None else Texts(vectors, pieces)
        value, numbers = objective(texts, batch, step, *judged)
        shares = {"loss": value, **numbers}
        return value, {name: number.detach() / group.size for name, number in shares.items()}

    rows = [packed.put(indices(starts[cut], starts[cut + 1] - starts[cut]), device) for cut in cuts]
    inputs = [Cached(encode, rows, int(starts[-1]))]
    if objective.joint:
        scores = objective.joint.scores(batch.pairs, stage, group, device, seed=seed, step=step)
        inputs.append(scores)
    return cached_backward(inputs, loss, group, scaler)
