"""Shared training of retrievers and rerankers: input, schedule and output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from cdmae.config.recipe import Stage
from cdmae.config.stages import AnyStage
from cdmae.errors import InputError
from cdmae.fields import asdict
from cdmae.finetuning import groups, topics
from cdmae.finetuning.groups import Examples
from cdmae.finetuning.labels import Labels
from cdmae.log import say
from cdmae.models import checkpoint, networks, sequences
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.training import loop, ranks, setup
from cdmae.training import state as states
from cdmae.training.loop import Schedule
from cdmae.training.scaling import Scaler
from cdmae.training.sharing import ALONE, Shared, sharing

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model


@dataclass(frozen=True)
class Data:
    """A stage's training data: examples, and the tokens of the split's queries and of all passages.

    counts: the numbers of dropped queries and of removed negatives, by reason; only the first
    process knows them. shared: through which the processes share further arrays.
    """

    examples: Examples
    counts: dict[str, int]
    queries: Tokens
    passages: Tokens
    shared: Shared = ALONE


@dataclass(frozen=True)
class Task:
    """Everything that training one kind of model in one stage needs.

    stage: the settings, including settings that depend on the data. columns: the columns of the
    curve, including the numbers that `learn` returns. batch: a function that makes the batch of
    the given examples (rows [B]) in an epoch. learn: a function that adds a batch's gradient to
    the weights and returns the step's numbers (`cdmae.finetuning.retriever.learn`). check: a
    function that returns a warning about the numbers of a step (counted from 1), or nothing, and
    raises `InputError` if the training cannot recover. notes: warnings that are known before the
    training begins. along: the models that are trained, too, by the subfolder that they are written
    to.
    """

    stage: Stage
    columns: list[str]
    batch: Callable[[np.ndarray, int], Any]
    learn: Callable[..., dict[str, Tensor]]
    check: Callable[[dict[str, float], int], str] | None = None
    notes: Sequence[str] = ()
    along: Mapping[str, Model] = field(default_factory=dict)


def trainer(task: Callable[..., Task]) -> Callable[..., None]:
    """Make the training command for one kind of model.

    task: a function that takes (model, data, stage, teacher) and the keywords `name`, `after`
    (whether the model continues from a trained one), `in_batch_teacher`, `joint_teacher`, `seed`
    and `device`.
    """

    def train(
        *,
        name: str,
        settings: AnyStage,
        encoder: Path,
        collection: Path,
        tokens: Path,
        negatives: Path,
        after: Path | None = None,
        teacher: Path | None = None,
        ranking: Path | None = None,
        in_batch_teacher: Path | None = None,
        joint_teacher: Path | None = None,
        seed: int,
        threads: int = 1,
        state: Path,
        output: Path,
    ) -> None:
        """Train the model `name` from a pre-trained encoder and write it to `output`.

        after: a trained model, whose weights replace the encoder's. negatives: a run over the
        training queries. teacher: a reranker's run over the same candidates, to learn from.
        ranking: the run of a teacher that scores only the passages that it ranks, in place of
        `teacher`. in_batch_teacher: a trained retriever whose scores of whole batches are learnt,
        too. joint_teacher: a reranker that is trained together with the retriever. A killed
        training resumes from the state folder; on the CPU its results are bit-identical.
        """
        device = setup.set_up(threads)
        if after:
            model = checkpoint.load(after, settings.kind, **settings.model())
        else:
            model = checkpoint.start_model(
                encoder, settings.kind, seed=setup.seed_of(seed, "head"), **settings.model()
            )
        with (
            ranks.joined(device) as group,
            sharing(state, group) as shared,
            states.opened(state, name, group) as saved,
        ):
            group.check_batch("queries", settings.queries)
            taught = teacher or ranking
            labels = None
            if settings.labels:
                labels = Labels(taught, settings.labels, settings.teacher_temperature)
            data = read(
                settings,
                model,
                encoder,
                collection,
                tokens,
                negatives,
                seed,
                threads,
                ranking,
                labels,
                shared,
            )
            made = task(
                model,
                data,
                settings,
                taught,
                name=name,
                after=after is not None,
                in_batch_teacher=in_batch_teacher,
                joint_teacher=joint_teacher,
                seed=seed,
                device=device,
            )
            network = model.network.to(device)
            trained = network
            along = made.along
            if along:
                trained = nn.ModuleList([network, *(other.network for other in along.values())])
            stage = made.stage
            examples = data.examples
            plan = schedule(stage, len(examples), name)
            scaler = Scaler(stage.precision, device)

            def batches(begin: int) -> Iterator[Any]:
                for _, epoch, rows in examples.batches(stage.queries, plan.last, begin):
                    yield made.batch(rows, epoch)

            def learn(drawn: Any, step: int) -> dict[str, Tensor]:
                how = {"seed": seed, "step": step, "scaler": scaler}
                return made.learn(network, drawn, stage, group, **how)

            seconds, notes = loop.train(
                trained,
                batches,
                learn,
                scaler=scaler,
                saved=saved,
                settings=stage,
                schedule=plan,
                columns=made.columns,
                examine=made.check,
            )
            if group.first:
                about = {
                    "settings": asdict(stage),
                    "parameters": sum(weight.numel() for weight in network.parameters()),
                    "name": name,
                    "seed": seed,
                    "queries": len(examples),
                    "counts": data.counts,
                    "steps": plan.last,
                    "seconds": round(seconds, 1),
                    "notes": [*made.notes, *notes],
                }
                if commits := networks.commits(checkpoint=encoder):
                    about["commits"] = commits
                with saved.finish(output) as aside:
                    checkpoint.save(aside, model, encoder, about)
                    for subfolder, other in along.items():
                        (aside / subfolder).mkdir()
                        count = sum(weight.numel() for weight in other.network.parameters())
                        theirs = about | {"parameters": count}
                        checkpoint.save(aside / subfolder, other, encoder, theirs)

    return train


def read(
    stage: Stage,
    model: Model,
    encoder: Path,
    collection: Path,
    tokens: Path,
    negatives: Path,
    seed: int,
    threads: int,
    ranking: Path | None = None,
    labels: Labels | None = None,
    shared: Shared = ALONE,
) -> Data:
    """Read a stage's training data, once for all processes; ranking, labels: see `groups.read`.

    Raises `InputError` if the files do not match each other.
    """
    passages = read_tokens(tokens, shared=shared.group.size > 1)
    checkpoint.check_tokens(model, passages.word_starts, str(tokens))
    others = ("epochs", "seed", "labelled")
    draws = {key: value for key, value in stage.drawn().items() if key not in others}
    counts: dict[str, int] = {}

    def make() -> dict[str, np.ndarray]:
        how = {"seed": seed, "ranking": ranking, "labels": labels}
        found, left_out = groups.read(collection, negatives, **draws, **how)
        counts.update(left_out)
        return found.arrays()

    fields = ("group", "random_negatives", "whole_pool")
    drawn = {name: draws[name] for name in fields if name in draws}
    examples = Examples.of_arrays(shared.arrays("examples", make), seed=seed, **drawn)
    if stage.target != "recall":  # which draws no groups
        examples.check()
    queries = sequences.queries_of(collection, stage.split, encoder, threads)
    if stage.topics:
        found = topics.of_queries(model, queries, examples.queries, stage, seed, str(collection))
        examples = replace(examples, topics=found)
    return Data(examples, counts, queries, passages, shared)


def schedule(stage: Stage, examples: int, name: str) -> Schedule:
    """Return a training's schedule, and log a message if the warm-up is shortened.

    The curve gets about 100 rows. An epoch has one step per complete batch. A `warmup_steps` below
    1 is a share of the steps, rounded up, as in transformers. A number of steps that would be more
    than half of the training is reduced to a tenth. In the paper, 1,000 steps are 1/24 of the
    training; on a small collection they would be the whole training.
    """
    steps = steps_of(stage, examples, name)
    share = stage.warmup_steps < 1
    warmup = (
        min(math.ceil(stage.warmup_steps * steps), steps - 1) if share else int(stage.warmup_steps)
    )
    if not share and warmup > steps / 2 and steps > 1:
        warmup = steps // 10
        say(
            f"{name} has only {steps:,} steps: the warm-up is reduced to {warmup:,} steps from "
            f"{stage.warmup_steps:,.0f}"
        )
    return Schedule(
        steps, min(warmup, steps - 1), last=steps, interval=max(1, min(100, steps // 100))
    )


def steps_of(stage: Stage, examples: int, name: str) -> int:
    """Return a training's number of steps; raise `InputError` if the batch exceeds the examples."""
    per_epoch = examples // stage.queries
    if not per_epoch:
        raise InputError(
            f"queries is {stage.queries}; allowed: up to {examples}, the training queries of {name}"
        )
    return max(1, round(stage.epochs * per_epoch))
