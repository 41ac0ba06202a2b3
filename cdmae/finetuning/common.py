"""What the training of a retriever and that of a reranker share: what they read, for how long, what they write."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from cdmae.errors import InputError
from cdmae.fields import asdict
from cdmae.finetuning import groups
from cdmae.log import say
from cdmae.models import checkpoint, sequences
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.training import loop, setup
from cdmae.training.loop import Schedule

if TYPE_CHECKING:
    from cdmae.config.schema import Stage
    from cdmae.finetuning.groups import Examples
    from cdmae.models.checkpoint import Model


@dataclass(frozen=True)
class Data:
    """What a stage learns from: its examples, and the word-pieces of the split's queries and of all passages."""

    examples: Examples
    queries: Tokens
    passages: Tokens


def read(
    stage: Stage, model: Model, encoder: Path, collection: Path, tokens: Path, negatives: Path, seed: int, threads: int
) -> Data:
    """Read what a stage trains `model` on; raises `InputError` where the files do not fit together."""
    passages = read_tokens(tokens)
    checkpoint.check_tokens(model, passages.word_starts, str(tokens))
    examples = groups.read(
        collection,
        negatives,
        split=stage.split,
        depth=stage.depth,
        group=stage.group,
        random_negatives=stage.random_negatives,
        seed=seed,
    )
    return Data(examples, sequences.queries_of(collection, stage.split, encoder, threads), passages)


def train(
    model: Model,
    examples: Examples,
    batch: Callable[[np.ndarray, int], Any],
    learn: Callable[..., dict[str, Tensor]],
    *,
    columns: list[str],
    name: str,
    stage: Stage,
    encoder: Path,
    seed: int,
    state: Path,
    output: Path,
    notes: Sequence[str] = (),
) -> None:
    """Train `model` and write it to `output`.

    batch: what is learnt from some examples (rows [B]) in an epoch. learn: the `learn` of `cdmae.finetuning.retriever`
    or `cdmae.finetuning.reranker`, whose numbers are the `columns` of the curve. notes: what is known of this training
    beforehand.
    """
    device = setup.device()
    network, plan = model.network.to(device), schedule(stage, len(examples), name)
    with loop.joined(state, name, device) as (saved, group):
        group.check_batch("queries", stage.queries)
        seconds, later = loop.train(
            network,
            lambda begin: (batch(rows, epoch) for _, epoch, rows in examples.batches(stage.queries, plan.last, begin)),
            lambda drawn, step: learn(network, drawn, stage, group, seed=seed, step=step),
            name=name,
            settings=stage,
            schedule=plan,
            columns=columns,
            held=saved,
            group=group,
        )
        if group.first:
            about = {
                "settings": asdict(stage),
                "parameters": sum(weight.numel() for weight in network.parameters()),
                "name": name,
                "seed": seed,
                "queries": len(examples),
                "steps": plan.last,
                "seconds": round(seconds, 1),
                "notes": [*notes, *later],
            }
            with saved.finish(output) as aside:
                checkpoint.save(aside, model, encoder, about)


def schedule(stage: Stage, examples: int, name: str) -> Schedule:
    """Tell how long a training is, and say where its warm-up is cut. The curve has about a hundred rows.

    An epoch has as many steps as whole batches. A `warmup_steps` below 1 is a share of the steps, rounded up, as in
    transformers. A warm-up that would not end before the training does becomes a tenth of the steps: at the paper's
    size 1,000 steps are a twenty-fourth, on a small collection they are everything.
    """
    per_epoch = examples // stage.queries
    if not per_epoch:
        raise InputError(f"queries is {stage.queries}; allowed: up to {examples}, the training queries of {name}")
    steps = max(1, round(stage.epochs * per_epoch))
    share = stage.warmup_steps < 1
    warmup = min(math.ceil(stage.warmup_steps * steps), steps - 1) if share else int(stage.warmup_steps)
    if warmup >= steps > 1:
        warmup = steps // 10
        say(f"{name} has only {steps:,} steps: the warm-up is {warmup:,} of them, not {stage.warmup_steps:,.0f}")
    return Schedule(steps, min(warmup, steps - 1), last=steps, interval=max(1, min(100, steps // 100)))
