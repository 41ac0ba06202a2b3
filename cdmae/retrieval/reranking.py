"""Scoring with a trained reranker: the teacher's run for distillation, and reranked runs.

Shapes: `Q` queries, `n` pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from cdmae.retrieval import asking, ranking, vectors
from cdmae.runs import Run, Target, read_run, write_run
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.tokens.tokenise import Tokeniser
from cdmae.training import setup

if TYPE_CHECKING:
    from cdmae.retrieval.asking import Question

PIECE = 1 << 15  # pairs per saved piece


def score(
    model: Model, queries: Tokens, asked: np.ndarray, passages: Tokens, rows: np.ndarray
) -> np.ndarray:
    """Compute s_ce of pairs of a query and a passage, [n] each: raw logits, float32 [n]."""
    device = next(model.network.parameters()).device
    longest = model.lengths["max_length"]
    pairs = sequences.pairs(queries, asked, passages, rows, longest, model.vocabulary)
    budget = vectors.BUDGET[device.type]
    scores = reranker.score_all(model.network, pairs, model.precision, budget, device)
    if not np.isfinite(scores).all():
        raise InputError(
            "the reranker's scores are not finite: its training diverged, or its states overflow "
            "in fp16 on this GPU; train it again, with precision fp32"
        )
    return scores


def ordered(
    judge: Model, queries: Tokens, passages: Tokens, run: Run, label: str = "", kept: str = ""
) -> Run:
    """Order each query's passages by the reranker's scores, ties by row.

    kept: the path prefix of the files that save the scores of each piece; "" saves none.
    """
    asked = run.queries
    scores = [np.empty(0, np.float32)]
    with Progress(len(asked), unit="pairs", label=label) as progress:
        for number, begin in enumerate(range(0, len(asked), PIECE)):
            cut = slice(begin, begin + PIECE)
            make = partial(score, judge, queries, asked[cut], passages, run.passages[cut])
            path = Path(f"{kept}{number:05d}.npy")
            scores.append(vectors.piece(path, make) if kept else make())
            progress.advance(len(asked[cut]))
    return ranking.ranked(asked, run.passages, np.concatenate(scores), len(run), len(asked))


def teacher(
    *,
    model: Path,
    collection: Path,
    tokens: Path,
    negatives: Path,
    settings: dict[str, Any],
    output: Path,
    threads: int = 1,
    code: Mapping[str, str] | None = None,
) -> None:
    """Write the teacher's run: a score for every passage that the student will draw.

    settings: the student's settings by `Stage.drawn`. They determine the positives and negatives
    that the student draws; no other passage needs a score. If the teacher labels the queries
    (`labelled`), it scores the best mined passages of every query.
    The precision is the same as in training. A killed run resumes after its last piece,
    unless the `code` has changed.
    """
    device = setup.set_up(threads)
    judge = checkpoint.load(model, "reranker")
    passages = read_tokens(tokens)
    checkpoint.check_tokens(judge, passages.word_starts, str(tokens))
    judge.network.to(device)
    queries = sequences.queries_of(collection, settings["split"], model)
    if settings.get("labelled"):
        candidates = read_run(negatives).best(settings["depth"])
    else:
        examples, _ = groups.read_examples(collection, negatives, Drawing.of(settings))
        drawn = [np.empty(0, np.int32)] * len(queries)
        for example, query in enumerate(examples.queries):
            drawn[query] = examples.drawn(example, math.ceil(settings["epochs"]))
        candidates = Run.of(drawn, drawn)  # without scores
    read = [digest(path) for path in (model, negatives, tokens, collection)]
    folder = vectors.pieces(output, [read, settings, PIECE, code])
    taught = ordered(judge, queries, passages, candidates, label="teach", kept=f"{folder}/")
    write_run(output, taught)


def rerank(
    *,
    model: Path,
    targets: list[Target],
    folders: list[Path],
    tokens: list[Path],
    lengths: dict[str, int],
    depth: int,
    threads: int = 1,
    code: Mapping[str, str] | None = None,
) -> None:
    """Rerank the best `depth` passages of each run; the others follow in their original order.

    targets: with the run of one system each. folders, tokens: of the distinct collections. lengths:
    where pairs are cut, by collection; by default at the model's own limit. The scores of the other
    passages decrease in steps of 1 from the lowest reranked score, as in SimLM. Recall beyond
    `depth` stays the same. A killed job resumes after its last piece, unless the `code` has
    changed.
    """
    setup.set_up(threads)
    judge = load(model)
    tokenised = dict(zip(folders, tokens, strict=True))
    queries = [target.folder / "queries.parquet" for target in targets]
    read = [digest(path) for path in (model, *(target.runs[0] for target in targets), *tokens)]
    key = [read, [digest(path) for path in queries], lengths, depth, PIECE, code]
    pieces = vectors.pieces(targets[0].output.parent, key)
    for number, target in enumerate(targets):
        path = tokenised[target.folder]
        passages = read_tokens(path)
        checkpoint.check_tokens(judge, passages.word_starts, str(path))
        queries = sequences.queries_of(target.folder, target.split, model)
        run = read_run(target.runs[0])
        label = f"rerank {target.collection}"
        kept = f"{pieces}/{number:03d}-"
        cut = checkpoint.at(judge, lengths.get(target.collection, 0))
        write_run(target.output, reorder(cut, queries, passages, run, depth, label, kept))


def load(model: Path) -> Model:
    """Load a reranker onto the device, with the precision in which it scores."""
    device = setup.device()
    judge = asking.loaded(checkpoint.load, model, "reranker")
    judge.network.to(device)
    return replace(judge, precision=setup.scoring_precision(judge.precision, device))


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
    best = ordered(judge, queries, passages, run.best(depth), label, kept)
    ranked = []
    scores = []
    for query in range(len(run)):
        top, values = best.ranked(query)
        rest = run.ranked(query)[0][depth:]
        below = values[-1:].repeat(len(rest)) - np.arange(1, len(rest) + 1, dtype=np.float32)
        ranked.append(np.concatenate([top, rest]))
        scores.append(np.concatenate([values, below]))
    return Run.of(ranked, scores)


def answer(system: dict[str, Any], question: Question) -> Run:
    """Rerank another system's answer to a query; `system` has `depth`, `model` and `tokens`."""
    judge = load(system["model"])
    tokeniser = asking.loaded(Tokeniser, system["model"])
    query = sequences.tokenised([question.text], tokeniser)
    passages = asking.loaded(read_tokens, system["tokens"])
    cut = checkpoint.at(judge, question.length)
    return reorder(cut, query, passages, question.parts[0], system["depth"])
