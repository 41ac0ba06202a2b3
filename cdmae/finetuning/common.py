"""What the training of a retriever and that of a reranker share: what they read, for how long, what
they write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from cdmae.config.stages import AnyStage, Stage
from cdmae.errors import InputError
from cdmae.fields import asdict
from cdmae.finetuning import groups
from cdmae.log import say
from cdmae.models import checkpoint, sequences
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.training import loop, ranks, setup
from cdmae.training import state as states
from cdmae.training.loop import Schedule

if TYPE_CHECKING:
    from cdmae.finetuning.groups import Examples
    from cdmae.models.checkpoint import Model


@dataclass(frozen=True)
class Data:
    """What a stage learns from: its examples, and the word-pieces of the split's queries and of all
    passages.

    counts: what was dropped from the examples, and why.
    """

    examples: Examples
    counts: dict[str, int]
    queries: Tokens
    passages: Tokens


@dataclass(frozen=True)
class Task:
    """What a kind of model makes of a stage.

    stage: with all that was left to the data. columns: of the curve, numbers of `learn` among them.
    batch: what is learnt from some examples (rows [B]) in an epoch. learn: adds a batch's gradient
    to the weights and returns the step's numbers (`cdmae.finetuning.retriever.learn`). notes: what
    is known of this training beforehand.
    """

    stage: Stage
    columns: list[str]
    batch: Callable[[np.ndarray, int], Any]
    learn: Callable[..., dict[str, Tensor]]
    notes: Sequence[str] = ()


def trainer(task: Callable[..., Task]) -> Callable[..., None]:
    """Return the training of a kind of model.

    task: of (model, data, stage, teacher), and of the keywords `name`, `seed` and `device`.
    """

    def train(
        *,
        name: str,
        settings: AnyStage,
        encoder: Path,
        collection: Path,
        tokens: Path,
        negatives: Path,
        teacher: Path | None = None,
        ranking: Path | None = None,
        seed: int,
        threads: int = 1,
        state: Path,
        output: Path,
    ) -> None:
        """Train the model `name` from a pre-trained encoder and write it to `output`.

        negatives: a run over the training queries; teacher: a reranker's run over the same
        candidates, from which a retriever may learn; ranking: in its place a run of others, which
        scores only what it ranks. The state folder lets a killed training go on to the same bits
        (on the CPU).
        """
        device = setup.set_up(threads)
        model = checkpoint.start_model(
            encoder, settings.kind, seed=setup.seed_of(seed, "head"), **settings.model()
        )
        data = read(settings, model, encoder, collection, tokens, negatives, seed, threads, ranking)
        what = task(model, data, settings, teacher or ranking, name=name, seed=seed, device=device)
        network, stage, examples = model.network.to(device), what.stage, data.examples
        plan = schedule(stage, len(examples), name)
        with ranks.joined(device) as group, states.opened(state, name, group) as saved:
            group.check_batch("queries", stage.queries)

            def batches(begin: int) -> Iterator[Any]:
                for _, epoch, rows in examples.batches(stage.queries, plan.last, begin):
                    yield what.batch(rows, epoch)

            seconds, notes = loop.train(
                network,
                batches,
                lambda drawn, step: what.learn(network, drawn, stage, group, seed=seed, step=step),
                saved=saved,
                settings=stage,
                schedule=plan,
                columns=what.columns,
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
                    "notes": [*what.notes, *notes],
                }
                if commits := checkpoint.commits(checkpoint=encoder):
                    about["commits"] = commits
                with saved.finish(output) as aside:
                    checkpoint.save(aside, model, encoder, about)

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
) -> Data:
    """Read what a stage trains `model` on; raises `InputError` where the files do not fit together."""
    passages = read_tokens(tokens)
    checkpoint.check_tokens(model, passages.word_starts, str(tokens))
    draws = {
        key: getattr(stage, key)
        for key in ("split", "depth", "group", "random_negatives", "margin")
    }
    examples, counts = groups.read(collection, negatives, **draws, seed=seed, ranking=ranking)
    return Data(
        examples, counts, sequences.queries_of(collection, stage.split, encoder, threads), passages
    )


def schedule(stage: Stage, examples: int, name: str) -> Schedule:
    """Tell how long a training is, and say where its warm-up is cut. The curve has about a hundred
    rows.

    An epoch has as many steps as whole batches. A `warmup_steps` below 1 is a share of the steps,
    rounded up, as in transformers. A warm-up that would not end before the training does becomes a
    tenth of the steps: at the paper's size 1,000 steps are a twenty-fourth, on a small collection
    they are everything.
    """
    per_epoch = examples // stage.queries
    if not per_epoch:
        raise InputError(
            f"queries is {stage.queries}; allowed: up to {examples}, the training queries of {name}"
        )
    steps = max(1, round(stage.epochs * per_epoch))
    share = stage.warmup_steps < 1
    warmup = (
        min(math.ceil(stage.warmup_steps * steps), steps - 1) if share else int(stage.warmup_steps)
    )
    if warmup >= steps > 1:
        warmup = steps // 10
        say(
            f"{name} has only {steps:,} steps: the warm-up is {warmup:,} of them, not {stage.warmup_steps:,.0f}"
        )
    return Schedule(
        steps, min(warmup, steps - 1), last=steps, interval=max(1, min(100, steps // 100))
    )
