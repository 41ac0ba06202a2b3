"""Scoring with a trained reranker: the teacher's run for distillation, and reranked runs.

Shapes: `Q` queries, `n` pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.errors import InputError
from cdmae.files import digest
from cdmae.finetuning import groups, reranker
from cdmae.finetuning.groups import Drawing
from cdmae.log import Progress
from cdmae.models import checkpoint, sequences
from cdmae.models.checkpoint import Model
from cdmae.retrieval import ranking, vectors
from cdmae.runs import Run, read_run, write_run
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.tokens.tokenise import Tokeniser
from cdmae.training import setup

if TYPE_CHECKING:
    from cdmae.retrieval.asking import Question

PIECE = 1 << 15  # pairs per saved piece


def score(
    model: Model,
    queries: Tokens,
    query_rows: np.ndarray,
    passages: Tokens,
    lists: list[np.ndarray],
) -> np.ndarray:
    """Compute s_ce for a list of passages per query: raw logits, float32 [n], list by list."""
    device = next(model.network.parameters()).device
    asked = np.repeat(query_rows, [len(rows) for rows in lists])
    rows = np.concatenate(lists)
    budget = vectors.BUDGET[device.type]
    scores = np.empty(len(rows), dtype=np.float32)
    for begin in range(0, len(scores), PIECE):
        cut = slice(begin, begin + PIECE)
        pairs = sequences.pairs(
            queries,
            asked[cut],
            passages,
            rows[cut],
            model.lengths["max_length"],
            model.vocabulary,
        )
        scores[cut] = reranker.score_all(model.network, pairs, model.precision, budget, device)
    if not np.isfinite(scores).all():
        raise InputError(
            "the reranker's scores are not finite: its training diverged, or its states overflow "
            "in fp16 on this GPU; train it again, with precision fp32"
        )
    return scores


def ordered(
    judge: Model,
    queries: Tokens,
    asked: np.ndarray,
    passages: Tokens,
    lists: Callable[[int], np.ndarray],
    at_once: int,
    label: str,
    kept: str = "",
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each query's passages, best first and ties by row, and their scores.

    asked: the rows of the queries. lists: a function that takes an index into `asked` and returns
    the passages of that query. at_once: the number of queries per piece. kept: the path prefix of
    the files that save each piece's scores; "" saves none.
    """
    with Progress(len(asked), unit="queries", label=label) as progress:
        for begin in range(0, len(asked), at_once):
            rows = asked[begin : begin + at_once]
            some = [lists(index) for index in range(begin, begin + len(rows))]
            make = partial(score, judge, queries, rows, passages, some)
            if kept:
                scores = vectors.piece(Path(f"{kept}{begin // at_once:05d}.npy"), make)
            else:
                scores = make()
            edges = np.cumsum([len(own) for own in some])
            for own, values in zip(some, np.split(scores, edges[:-1]), strict=True):
                order = ranking.best(values, own, len(own))
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
    """Write the teacher's run: a score for every passage that the student will draw.

    settings: the student's settings by `Stage.drawn`. They determine the positives and negatives
    that the student draws; no other passage needs a score. If the teacher labels the queries
    (`labelled`), it scores the best mined passages of every query.
    The precision is the same as in training. A killed run resumes after its last piece.
    """
    device = setup.set_up(threads)
    judge = checkpoint.load(model, "reranker")
    passages = read_tokens(tokens)
    checkpoint.check_tokens(judge, passages.word_starts, str(tokens))
    judge.network.to(device)
    rounds = math.ceil(settings["epochs"])
    queries = sequences.queries_of(collection, settings["split"], model, threads)
    if settings.get("labelled"):
        mined = read_run(negatives)
        asked = np.arange(len(mined))
        at_once = max(1, PIECE // settings["depth"])

        def drawn(index: int) -> np.ndarray:
            return mined.ranked(index)[0][: settings["depth"]]
    else:
        examples, _ = groups.read_examples(collection, negatives, Drawing.of(settings))
        asked = examples.queries
        at_once = max(1, PIECE // (rounds * settings["group"]))

        def drawn(index: int) -> np.ndarray:
            return examples.drawn(index, rounds)

    key = [
        digest(model),
        digest(negatives),
        settings,
        at_once,
    ]
    taught = [(np.empty(0, np.int32), np.empty(0, np.float32))] * len(queries)
    folder = vectors.pieces(output, key)
    best = ordered(
        judge,
        queries,
        asked,
        passages,
        drawn,
        at_once,
        label="teach",
        kept=f"{folder}/",
    )
    for query, answer in zip(asked, best, strict=True):
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
    """Rerank the best `depth` passages of each run; the others follow in their original order.

    collections, splits, lengths, runs, outputs: one per target; tokens: one folder per collection.
    Pairs are cut at the target's length, or at the model's own limit if the length is 0. The scores
    of the other passages decrease in steps of 1 from the lowest reranked score, as in SimLM. Recall
    beyond `depth` stays the same. A killed job resumes after its last piece.
    """
    device = setup.set_up(threads)
    judge = checkpoint.load(model, "reranker")
    judge.network.to(device)
    judge = replace(judge, precision=setup.scoring_precision(judge.precision, device))
    folders = dict(zip(dict.fromkeys(collections), tokens, strict=True))
    targets = zip(collections, splits, lengths, runs, outputs, strict=True)
    key = [
        digest(model),
        [digest(path) for path in runs],
        lengths,
        depth,
        PIECE,
    ]
    folder = vectors.pieces(outputs[0].parent, key)
    for number, (collection, split, length, path, output) in enumerate(targets):
        passages = read_tokens(folders[collection])
        run = read_run(path)
        checkpoint.check_tokens(judge, passages.word_starts, str(folders[collection]))
        queries = sequences.queries_of(collection, split, model, threads)
        if len(run) != len(queries):
            raise InputError(
                f"{path} has {len(run)} queries, but the split {split!r} of {collection} has "
                f"{len(queries)}; delete it and run again"
            )
        reranked = reorder(
            checkpoint.at(judge, length),
            queries,
            passages,
            run,
            depth,
            label=f"rerank {collection.name}",
            kept=f"{folder}/{number:03d}-",
        )
        write_run(output, reranked)


def reorder(
    judge: Model,
    queries: Tokens,
    passages: Tokens,
    run: Run,
    depth: int,
    label: str = "",
    kept: str = "",
) -> Run:
    """Rerank the best `depth` passages per query; `ordered` explains `label` and `kept`."""
    at_once = max(1, PIECE // depth)
    rows = np.arange(len(run))
    lists = [run.ranked(row)[0] for row in rows]
    tops = [listed[:depth] for listed in lists]
    best = ordered(judge, queries, rows, passages, tops.__getitem__, at_once, label, kept)
    ranked = []
    scores = []
    for listed, (top, values) in zip(lists, best, strict=True):
        rest = listed[depth:]
        below = values[-1:].repeat(len(rest)) - np.arange(1, len(rest) + 1, dtype=np.float32)
        ranked.append(np.concatenate([top, rest]))
        scores.append(np.concatenate([values, below]))
    return Run.of(ranked, scores)


def answer(system: dict[str, Any], question: Question) -> Run:
    """Rerank another system's answer to a query; `system` has `depth`, `model` and `tokens`."""
    judge = question.load(checkpoint.load, system["model"], "reranker")
    device = setup.device()
    judge.network.to(device)
    judge = replace(judge, precision=setup.scoring_precision(judge.precision, device))
    tokeniser = question.load(Tokeniser, system["model"], question.threads)
    query = sequences.tokenised([question.text], tokeniser)
    passages = question.load(read_tokens, system["tokens"])
    cut = checkpoint.at(judge, question.length)
    return reorder(cut, query, passages, question.parts[0], system["depth"])
