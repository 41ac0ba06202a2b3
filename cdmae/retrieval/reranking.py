"""A trained reranker at work: scores of pairs, the teacher's run for distillation, another system's run ordered anew.

Shapes: `Q` queries, `n` pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cdmae.errors import InputError
from cdmae.finetuning import groups, reranker
from cdmae.log import Progress
from cdmae.models import checkpoint, sequences
from cdmae.models.checkpoint import Model
from cdmae.retrieval import vectors
from cdmae.runs import Run, read_run, write_run
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.training import setup

PIECE = 1 << 15  # pairs scored between two saved pieces


def score(
    model: Model, queries: Tokens, query_rows: np.ndarray, passages: Tokens, lists: list[np.ndarray]
) -> np.ndarray:
    """Compute s_ce of a list of passages for each of some queries, raw logits, the lists end to end, float32 [n]."""
    device = next(model.network.parameters()).device
    asked, rows = np.repeat(query_rows, list(map(len, lists))), np.concatenate(lists)
    scores = np.empty(len(rows), dtype=np.float32)
    for begin in range(0, len(scores), PIECE):
        cut = slice(begin, begin + PIECE)
        read = sequences.pairs(queries, asked[cut], passages, rows[cut], model.lengths["max_length"], model.vocabulary)
        scores[cut] = reranker.score_all(model.network, read, model.precision, vectors.BUDGET[device.type], device)
    if not np.isfinite(scores).all():
        raise InputError("the reranker gives scores that are not numbers: its training diverged; train it again")
    return scores


def ordered(
    judge: Model, queries: Tokens, asked: np.ndarray, passages: Tokens, lists: Callable[[int], np.ndarray],
    at_once: int, label: str, kept: str = "",
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Yield for each of the query rows `asked` its passages ``lists(place)``, best first, ties by row, and the scores.

    at_once: queries in a piece; kept: what the names of the files begin with that keep the scores; "" keeps none.
    """
    with Progress(len(asked), unit="queries", label=label) as progress:
        for begin in range(0, len(asked), at_once):
            rows = asked[begin : begin + at_once]
            some = [lists(place) for place in range(begin, begin + len(rows))]
            make = partial(score, judge, queries, rows, passages, some)
            scores = vectors.piece(Path(f"{kept}{begin // at_once:05d}.npy"), make) if kept else make()
            for own, values in zip(some, np.split(scores, np.cumsum(list(map(len, some)))[:-1]), strict=True):
                order = np.lexsort((own, -values))
                yield own[order], values[order]
            progress.advance(len(rows))


def teacher(
    *,
    model: Path,
    collection: Path,
    tokens: Path,
    negatives: Path,
    settings: dict[str, Any],
    output: Path,
    threads: int = 1,
) -> None:
    """Write the run from which a student learns: every passage that it will draw, positives included, with its score.

    The settings are the student's (split, depth, group, random_negatives, epochs, seed, margin): with them what it
    draws is known beforehand, and nothing else needs a score. The precision is that of training. A killed run goes on
    after its last piece.
    """
    device = setup.set_up(threads)
    judge, passages = checkpoint.load(model, "reranker"), read_tokens(tokens)
    checkpoint.check_tokens(judge, passages.word_starts, str(tokens))
    judge.network.to(device)
    rounds = math.ceil(settings["epochs"])
    examples, _ = groups.read(
        collection, negatives, **{name: value for name, value in settings.items() if name != "epochs"}
    )
    queries = sequences.queries_of(collection, settings["split"], model, threads)
    at_once = max(1, PIECE // (rounds * settings["group"]))
    key = [vectors.stamp(model / "model.safetensors"), vectors.stamp(negatives), settings, at_once]
    taught = [(np.empty(0, np.int32), np.empty(0, np.float32))] * len(queries)
    with vectors.pieces(output, key) as folder:
        drawn = partial(examples.drawn, epochs=rounds)
        best = ordered(judge, queries, examples.queries, passages, drawn, at_once, "teach", f"{folder}/")
        for query, answer in zip(examples.queries, best, strict=True):
            taught[query] = answer
        write_run(output, Run.of(*map(list, zip(*taught, strict=True))))


def rerank(
    *,
    model: Path,
    collections: list[Path],
    tokens: list[Path],
    splits: list[str],
    lengths: list[int],
    runs: list[Path],
    depth: int,
    outputs: list[Path],
    threads: int = 1,
) -> None:
    """Write other runs anew, one per target: their best `depth` passages by the reranker's scores, the rest below.

    `tokens` are one folder per collection. Pairs are cut at the length of the target, or at the model's own where that
    is 0.
    The rest keeps its order, its scores going down in steps of 1 from the lowest of the reranked (as SimLM does), so
    that recall at depths beyond `depth` stays what it was. A killed job goes on after its last piece.
    """
    device = setup.set_up(threads)
    judge = checkpoint.load(model, "reranker")
    judge.network.to(device)
    judge = replace(judge, precision=setup.scoring_precision(judge.precision, device))
    folders = dict(zip(dict.fromkeys(collections), tokens, strict=True))
    parts = zip(collections, splits, lengths, runs, outputs, strict=True)
    key = [vectors.stamp(model / "model.safetensors"), [vectors.stamp(path) for path in runs], lengths, depth, PIECE]
    with vectors.pieces(outputs[0], key) as folder:
        for number, (collection, split, length, path, output) in enumerate(parts):
            passages, run = read_tokens(folders[collection]), read_run(path)
            checkpoint.check_tokens(judge, passages.word_starts, str(folders[collection]))
            queries = sequences.queries_of(collection, split, model, threads)
            if len(run) != len(queries):
                raise InputError(
                    f"{path} has {len(run)} queries, the split {split!r} of {collection} has {len(queries)}"
                )
            cut, label, kept = checkpoint.at(judge, length), f"rerank {collection.name}", f"{folder}/{number:03d}-"
            write_run(output, reorder(cut, queries, passages, run, depth, label=label, kept=kept))


def reorder(
    judge: Model, queries: Tokens, passages: Tokens, run: Run, depth: int, *, label: str = "", kept: str = ""
) -> Run:
    """Put the best `depth` passages per query of a run in the order of the reranker (see `ordered`)."""
    lists = [run.ranked(row)[0] for row in range(len(run))]
    tops, at_once = [listed[:depth] for listed in lists], max(1, PIECE // depth)
    best = ordered(judge, queries, np.arange(len(run)), passages, tops.__getitem__, at_once, label, kept)
    ranked, scores = [], []
    for listed, (top, values) in zip(lists, best, strict=True):
        rest = listed[depth:]
        below = values[-1:].repeat(len(rest)) - np.arange(1, len(rest) + 1, dtype=np.float32)
        ranked.append(np.concatenate([top, rest]))
        scores.append(np.concatenate([values, below]))
    return Run.of(ranked, scores)
