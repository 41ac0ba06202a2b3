"""What all fine-tunings share: their files, data, schedule and result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from cdmae.config.stages import AnyStage, Stage
from cdmae.errors import InputError
from cdmae.fields import asdict
from cdmae.finetuning import groups, topics
from cdmae.finetuning.groups import Drawing, Examples
from cdmae.finetuning.labels import Labels
from cdmae.log import say
from cdmae.models import checkpoint, networks, sequences
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.training import loop, ranks, setup
from cdmae.training import state as states
from cdmae.training.loop import Schedule, Task
from cdmae.training.ranks import Ranks
from cdmae.training.state import Share, unshared

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model


@dataclass(frozen=True)
class Inputs:
    """The files that a fine-tuning reads.

    encoder: a pre-trained encoder with its tokenizer. negatives: a run over the training queries.
    after: a trained model, whose weights replace the encoder's. teacher: a reranker's run over the
    same candidates, to learn from. ranking: the run of a teacher that scores only the passages that
    it ranks, in place of `teacher`. in_batch_teacher: a trained retriever whose scores of whole
    batches are learnt, too. joint_teacher: a reranker that is trained together with the retriever.
    """

    encoder: Path
    collection: Path
    tokens: Path
    negatives: Path
    after: Path | None = None
    teacher: Path | None = None
    ranking: Path | None = None
    in_batch_teacher: Path | None = None
    joint_teacher: Path | None = None

    @property
    def scores(self) -> Path | None:
        """Return the run with a teacher's scores of the groups, if there is one."""
        return self.teacher or self.ranking

    def model(self, stage: Stage, seed: int) -> Model:
        """Return the model from which the training begins; its head's weights may be new."""
        if self.after:
            return checkpoint.load(self.after, stage.kind, **stage.model())
        return checkpoint.start_model(
            self.encoder, stage.kind, seed=setup.seed_of(seed, "head"), **stage.model()
        )


@dataclass(frozen=True)
class Data:
    """A stage's training data: examples, and the tokens of the split's queries and of all passages.

    counts: the numbers of dropped queries and of removed negatives, by reason; only the first
    process knows them. share: by which the processes share further arrays.
    """

    examples: Examples
    counts: dict[str, int]
    queries: Tokens
    passages: Tokens
    share: Share = unshared

    @classmethod
    def read(
        cls,
        inputs: Inputs,
        stage: Stage,
        model: Model,
        *,
        seed: int,
        share: Share = unshared,
    ) -> Data:
        """Read a stage's training data, once for all processes.

        Raises `InputError` if the files do not match each other.
        """
        passages = read_tokens(inputs.tokens)
        checkpoint.check_tokens(model, passages.word_starts, str(inputs.tokens))
        drawing = Drawing.of(stage.drawn() | {"seed": seed})
        labels = None
        if stage.labels:
            labels = Labels(inputs.scores, stage.labels, stage.teacher_temperature)
        counts: dict[str, int] = {}

        def make() -> dict[str, np.ndarray]:
            found, left_out = groups.read_examples(
                inputs.collection, inputs.negatives, drawing, inputs.ranking, labels
            )
            counts.update(left_out)
            return found.arrays()

        examples = Examples.of_arrays(share("examples", make), drawing)
        queries = sequences.queries_of(inputs.collection, stage.split, inputs.encoder)
        if stage.topics:
            name = str(inputs.collection)
            found = topics.of_queries(model, queries, examples.queries, stage, seed, name)
            examples = replace(examples, topics=found)
        return cls(examples, counts, queries, passages, share)

    def teacher(self, folder: Path, kind: str, device: torch.device) -> Model:
        """Load a trained model; raise `InputError` if it has another tokenizer than its student."""
        model = checkpoint.load(folder, kind)
        checkpoint.check_tokens(model, self.passages.word_starts, str(folder))
        model.network.to(device)
        return model


@dataclass(frozen=True)
class FineTuning(Task):
    """The training `name` of a model in one stage.

    stage: the settings, including settings that depend on the data. A subclass has
    ``draw(rows, epoch)``, which returns the batch of the examples `rows` [B] in an epoch.
    """

    name: str
    model: Model
    data: Data
    stage: Stage
    seed: int
    group: Ranks = Ranks()

    @property
    def network(self) -> nn.Module:
        """Return the weights to train."""
        return self.model.network

    @property
    def settings(self) -> Stage:
        """Return the stage."""
        return self.stage

    @cached_property
    def schedule(self) -> Schedule:
        """Return the schedule, and log a message if the warm-up is shortened."""
        return stage_schedule(self.stage, len(self.data.examples), self.name)

    def batches(self, begin: int) -> Iterator[Any]:
        """Draw the batches from the step `begin` on."""
        steps = self.data.examples.batches(self.stage.queries, self.schedule.last, begin)
        for _, epoch, rows in steps:
            yield self.draw(rows, epoch)

    def write(self, folder: Path, encoder: Path, seconds: float, notes: list[str]) -> None:
        """Write the trained model, with its origin, into an existing folder.

        encoder: the folder of the tokenizer. seconds, notes: of the training.
        """
        checkpoint.save(folder, self.model, encoder, self.about(encoder, seconds, notes))

    def about(self, encoder: Path, seconds: float, notes: list[str]) -> dict[str, Any]:
        """Return the contents of ``about.json``."""
        about = {
            "settings": asdict(self.stage),
            "parameters": self.model.network.num_parameters(),
            "name": self.name,
            "seed": self.seed,
            "queries": len(self.data.examples),
            "counts": self.data.counts,
            "steps": self.schedule.last,
            "seconds": round(seconds, 1),
            "notes": [*notes, *self.model.vocabulary.doubts(self.data.passages.ids)],
        }
        commits = networks.commits(checkpoint=encoder)
        return about | ({"commits": commits} if commits else {})


def train(
    *,
    name: str,
    settings: AnyStage,
    files: Inputs,
    seed: int,
    threads: int = 1,
    state: Path,
    output: Path,
) -> None:
    """Train the model `name` in one stage, and write it to `output`.

    `cdmae.finetuning.retriever` or `.reranker` sets up the training. A killed training resumes from
    the state folder; on the CPU its results are bit-identical.
    """
    module = import_module(f"cdmae.finetuning.{settings.kind}")
    device = setup.set_up(threads)
    model = files.model(settings, seed)
    with ranks.joined(device) as group, states.opened(state, name, group) as saved:
        share = saved.share
        data = Data.read(files, settings, model, seed=seed, share=share)
        training = module.set_up(name, model, data, settings, files, seed, group)
        training.network.to(device)
        seconds, notes = loop.train(training, saved)
        if group.first:
            with saved.finish(output) as folder:
                training.write(folder, files.encoder, seconds, notes)


def stage_schedule(stage: Stage, examples: int, name: str) -> Schedule:
    """Return a training's schedule, and log a message if the warm-up is shortened.

    The curve gets about 100 rows. An epoch has one step per complete batch. A `warmup_steps` below
    1 is a share of the steps, rounded up, as in transformers. A number of steps that would be more
    than half of the training is reduced to a tenth. In the paper, 1,000 steps are 1/24 of the
    training; on a small collection they would be the whole training.
    """
    steps = steps_of(stage, examples, name)
    if stage.warmup_steps < 1:
        warmup = math.ceil(stage.warmup_steps * steps)
    else:
        warmup = int(stage.warmup_steps)
        if warmup > steps / 2 and steps > 1:
            warmup = steps // 10
            say(
                f"{name} has only {steps:,} steps: the warm-up is reduced to {warmup:,} steps from "
                f"{stage.warmup_steps:,.0f}"
            )
    interval = max(1, min(100, steps // 100))
    return Schedule(steps, min(warmup, steps - 1), last=steps, interval=interval)


def steps_of(stage: Stage, examples: int, name: str) -> int:
    """Return a training's number of steps; raise `InputError` if the batch exceeds the examples."""
    per_epoch = examples // stage.queries
    if not per_epoch:
        raise InputError(
            f"queries is {stage.queries}; expected up to {examples}, the training queries of {name}"
        )
    return max(1, round(stage.epochs * per_epoch))
