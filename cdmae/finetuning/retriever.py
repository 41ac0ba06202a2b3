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

from cdmae.config.stages import AnyRetriever, Regularised, Retriever, Unified
from cdmae.finetuning import joint, recall, reranker
from cdmae.finetuning.caching import Cached, cached_backward
from cdmae.finetuning.objectives import Batch, objective
from cdmae.finetuning.regulariser import Sparsity
from cdmae.finetuning.scoring import all_scores
from cdmae.finetuning.task import Data, FineTuning, Inputs, steps_of
from cdmae.finetuning.teacher import Teacher
from cdmae.log import say
from cdmae.models import checkpoint, heads, packed, sequences
from cdmae.models.heads import sparse, table
from cdmae.training import setup
from cdmae.training.loop import COLLAPSED
from cdmae.training.ranks import Ranks
from cdmae.training.setup import UNSCALED, Scaler

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model

# shares of the loss of guessing above which a training of at least so many steps has learnt nothing
GUESSED = 0.98
LEAST_STEPS = 50


@dataclass(frozen=True)
class RetrieverTask(FineTuning):
    """The training of a retriever, which learns from judgments and, if given, teachers.

    teacher: scores of the groups. second: a retriever that scores whole batches. joint: a reranker
    that is trained together with the retriever.
    """

    sparsity: Sparsity | None = None
    teacher: Teacher | None = None
    second: Model | None = None
    joint: Model | None = None

    @property
    def network(self) -> nn.Module:
        """Return the weights of the retriever, and of a teacher that learns, too."""
        if not self.joint:
            return self.model.network
        return nn.ModuleList([self.model.network, self.joint.network])

    @property
    def budget(self) -> int:
        """Return the number of word-pieces that are encoded at a time."""
        return self.stage.chunk * self.stage.passage_length

    def draw(self, rows: np.ndarray, epoch: int) -> Batch:
        """Return the batch of the given examples in an epoch."""
        data = self.data
        drawn = data.examples.draw(rows, epoch)  # [B, N]
        asked = data.examples.queries[rows]
        batch = Batch.of(self.model, data, asked, drawn)
        if self.stage.in_batch:
            batch.excluded = data.examples.excluded(rows, drawn)
        if self.teacher:
            batch.teacher = self.teacher.scores(asked, drawn)
            if self.stage.denoise:
                own = np.arange(len(rows))
                false = self.teacher.preferred(asked, drawn, self.stage)
                batch.excluded.reshape(len(rows), len(rows), -1)[own, own] |= false
        if self.second:
            every = Batch.of(self.second, data, asked, drawn)
            with setup.autocast(self.stage.precision, self.group.device):
                batch.in_batch = all_scores(self.second, every, self.budget)
        if self.joint:
            batch.pairs = reranker.pairs(data, self.joint, asked, drawn)
        return batch

    def learn(self, batch: Batch, step: int, scaler: Scaler = UNSCALED) -> dict[str, Tensor]:
        """Add the gradient of a batch's scaled loss to the weights; return its numbers, 0-d.

        Every process encodes a share of the sequences, of all lengths, and computes the loss of the
        whole batch: its numbers are divided by the number of processes. Dropout is drawn for (seed,
        step, chunk, process): both passes over a chunk use the same mask.
        """
        network = self.model.network
        stage = self.stage
        group = self.group
        device = next(network.parameters()).device
        head = heads.of(stage.head)
        is_learned = stage.query_weights == "learned"
        cuts = sequences.chunks(batch.sequences.lengths, self.budget, group.rank, group.size)
        packs = [packed.pack(batch.sequences.take(cut), device) for cut in cuts]
        memories: list[dict[str, Tensor]] = [{} for _ in cuts]

        def encode(chunk: int) -> Tensor:
            generator = setup.generator(device, self.seed, "dropout", step, chunk, group.rank)
            with setup.autocast(stage.precision, device):
                pack = packs[chunk]
                memory = memories[chunk]
                return head.vectors(network, pack, stage, generator=generator, memory=memory)

        def loss(vectors: Tensor, *more: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            asked, *judged = more if is_learned else (batch.weights, *more)
            texts = replace(batch, weights=asked).texts(vectors)
            value, numbers = objective(texts, batch, stage, self.sparsity, step, *judged)
            shares = {"loss": value, **numbers}
            return value, {name: number.detach() / group.size for name, number in shares.items()}

        rows = batch.rows
        own = [packed.put(rows.take(cut).values, device) for cut in cuts]
        inputs = [Cached(encode, own, len(rows.values))]
        if is_learned:
            share = torch.arange(group.rank, batch.queries, group.size)
            weights = batch.weights[share]
            inputs.append(Cached(lambda _: table.learned(weights, network), [share], batch.queries))
        if self.joint:
            inputs.append(joint.scores(self.joint, batch.pairs, self, step))
        return cached_backward(inputs, loss, group, scaler)

    def note(self, numbers: dict[str, float], step: int) -> str:
        """Return a warning about vectors that are saturated, or a training that learnt nothing."""
        note = self.sparsity.check(numbers, step) if self.sparsity else ""
        ended = step == self.schedule.last >= LEAST_STEPS
        return note or (guesses(numbers, self.stage) if ended else "")

    def write(self, folder: Path, encoder: Path, seconds: float, notes: list[str]) -> None:
        """Write the retriever, and a teacher that has learnt, too, into a subfolder."""
        super().write(folder, encoder, seconds, notes)
        if self.joint:
            about = self.about(encoder, seconds, notes)
            about["parameters"] = self.joint.network.num_parameters()
            (folder / "teacher").mkdir()
            checkpoint.save(folder / "teacher", self.joint, encoder, about)


def set_up(
    name: str,
    model: Model,
    data: Data,
    stage: AnyRetriever,
    inputs: Inputs,
    seed: int,
    group: Ranks,
) -> FineTuning:
    """Set up the training of a retriever; its stage may then have a temperature from the data.

    Raises `InputError` for teachers from which it would learn nothing.
    """
    if stage.target == "recall":
        return recall.set_up(name, model, data, stage, seed, group)
    device = group.device
    model.network.to(device)
    is_learned = stage.query_weights == "learned"
    words = sparse.width(model.network)
    if stage.query_weights == "idf" or (is_learned and model.table is None):
        found = data.share(
            "idf", lambda: {"table": table.idf(data.passages, model.vocabulary, words)}
        )
        model = replace(model, table=np.array(found["table"]))
    if is_learned:
        table.start_learning(model.network, words)
    teacher = Teacher.read(inputs.scores, data.share) if inputs.scores else None
    if teacher and stage.margin_bins:
        examples = replace(data.examples, chances=teacher.balance(stage.margin_bins))
        data = replace(data, examples=examples)
    if teacher and stage.distillation != "none":
        teacher.check_worth(data.examples, stage, name)
    sparsity = None
    if isinstance(stage, Regularised):
        steps = steps_of(stage, len(data.examples), name)
        sparsity = Sparsity(stage, name, steps, words)
    if not stage.temperature:
        rows = data.examples.order(0, stage.queries)[: stage.queries]
        first = RetrieverTask(name, model, data, stage, seed, group).draw(rows, 0)
        spread = spread_of_scores(model, first, stage, seed)
        say(f"{name}: scores are divided by {spread:g}, their spread in the first batch")
        stage = replace(stage, temperature=spread)
    training = RetrieverTask(name, model, data, stage, seed, group, sparsity, teacher)
    if inputs.in_batch_teacher:
        second = data.teacher(inputs.in_batch_teacher, "retriever", device)
        training = replace(training, second=second)
    if inputs.joint_teacher:
        judge = data.teacher(inputs.joint_teacher, "reranker", device)
        training = replace(training, joint=judge)
    return training


def spread_of_scores(model: Model, batch: Batch, stage: Retriever, seed: int) -> float:
    """Return the mean over queries of the standard deviation of a batch's scores q . d [B x N].

    A [CLS] vector is the output of a LayerNorm. Its length is about the square root of its width D,
    and the standard deviation of dot products is ten or more. A softmax over them is nearly 0 or 1,
    and the loss is several times the loss of guessing. At the learning rates that small networks
    need, the first steps then undo the pre-training.

    Dropout is active as in training. For random weights it causes most of the spread, because their
    vectors are nearly equal. The result is rounded to three digits: a training that resumes on
    another machine then computes the same number. It is 1 if the spread is only rounding error.
    """
    scores = all_scores(model, batch, stage.chunk * stage.passage_length, seed)
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
