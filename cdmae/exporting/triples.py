"""Write training queries with mined negatives and a teacher's scores for other libraries.

A file has one JSON object per line, in the columns of one library, which
`cdmae.collections.pair_rows` describes and reads. sentence-transformers needs the same number of
negatives in every row, and one row per positive; its libraries' losses read the scores from
``label``. Tevatron has no column for scores: each passage has its own, ``score``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cdmae.collections.store import read_passages, read_qrels, read_queries
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.finetuning.groups import text_ids
from cdmae.finetuning.labels import Labels
from cdmae.finetuning.selection import Selection
from cdmae.runs import Run, read_run

DIALECTS = ("sentence-transformers", "tevatron", "flagembedding")


@dataclass(frozen=True)
class Training:
    """The files of a system's training, and the settings that select its negatives.

    teacher: the run with the teacher's scores; None without a teacher. labels, temperature: as of
    the stage, if the teacher labels the queries.
    """

    collection: Path
    split: str
    negatives: Path
    teacher: Path | None
    depth: int
    margin: float
    train_queries: int
    labels: float = 0.0
    temperature: float = 1.0


@dataclass(frozen=True)
class Example:
    """A training query: rows of its positives and negatives, and the teacher's scores, if any."""

    query: int
    positives: np.ndarray
    negatives: np.ndarray
    scores: dict[int, float]


def export(output: Path, dialect: str, training: Training, negatives: int) -> dict[str, int]:
    """Write the training queries in a dialect, with up to `negatives` negatives each.

    Returns the number of written rows, and the number of omitted queries by reason. Raises
    `InputError` if no query is left.
    """
    if dialect not in DIALECTS:
        raise InputError(f"--triples is {dialect}; allowed: {', '.join(DIALECTS)}")
    queries = read_queries(training.collection, training.split)
    passages = read_passages(training.collection)
    teacher = read_run(training.teacher) if training.teacher else None
    selection = _selection(training, queries["query_id"], teacher)
    counts = {reason: count for reason, count in selection.counts().items() if "left out" in reason}
    write = {
        "sentence-transformers": _sentence_transformers,
        "tevatron": _tevatron,
        "flagembedding": _flagembedding,
    }[dialect]
    rows = 0
    short = 0
    with complete(output) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for example in _examples(selection, teacher, negatives):
            if dialect == "sentence-transformers" and len(example.negatives) < negatives:
                short += 1
                continue
            query = {"query_id": queries["query_id"][example.query]}
            query["query"] = queries["text"][example.query]
            for row in write(query, example, passages):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                rows += 1
        if not rows:
            words = f"no query of {training.collection} {training.split} can be exported"
            wanted = f" ({short:,} have fewer than {negatives} negatives)" if short else ""
            raise InputError(
                words + wanted + "; allowed: a smaller --negatives, or a run with more negatives"
            )
    if short:
        counts[f"left out with fewer than {negatives} negatives"] = short
    return {"rows": rows, **counts}


def _selection(training: Training, ids: pd.Series, teacher: Run | None) -> Selection:
    """Select the negatives as the training does; with a teacher, keep the passages it scored."""
    run = read_run(training.negatives)
    if training.labels:
        labels = Labels(training.teacher, training.labels, training.temperature)
        qrels = labels.qrels(run, training.depth)
    else:
        qrels = read_qrels(training.collection, training.split)
    selection = Selection.mined(run, qrels, text_ids(training.collection), training.depth)
    if training.margin:
        selection.limit_by_margin(training.margin)
    if teacher:
        selection.limit_to_ranked(teacher, 1)
    if training.train_queries:
        selection.limit_to_queries(ids, training.train_queries)
    return selection


def _examples(selection: Selection, teacher: Run | None, negatives: int) -> Iterator[Example]:
    for query in np.flatnonzero(selection.kept).tolist():
        scores: dict[int, float] = {}
        if teacher:
            known, values = teacher.ranked(query)
            scores = dict(zip(known.tolist(), values.tolist(), strict=True))
        mined = selection.negatives[query][:negatives]
        if len(mined):
            yield Example(query, selection.positives[query], mined, scores)


# --- dialects -------------------------------------------------------------------------------------


def _texts(rows: np.ndarray, passages: pa.Table) -> list[str]:
    """Join title and text of each passage, as models read them."""
    found = passages.take(rows).to_pylist()
    return [f"{each['title']} {each['text']}".strip() for each in found]


def _sentence_transformers(
    query: dict[str, str], example: Example, passages: pa.Table
) -> Iterator[dict[str, Any]]:
    negatives = _texts(example.negatives, passages)
    numbered = {f"negative_{number}": text for number, text in enumerate(negatives, 1)}
    for positive in example.positives:
        (text,) = _texts(np.array([positive]), passages)
        row = {"anchor": query["query"], "positive": text, **numbered}
        if example.scores:
            rows = [int(positive), *example.negatives.tolist()]
            row["label"] = [example.scores[each] for each in rows]
        yield row


def _tevatron(
    query: dict[str, str], example: Example, passages: pa.Table
) -> Iterator[dict[str, Any]]:
    def listed(rows: np.ndarray) -> list[dict[str, Any]]:
        found = []
        for row, passage in zip(rows.tolist(), passages.take(rows).to_pylist(), strict=True):
            entry = {"docid": passage["passage_id"], **passage}
            del entry["passage_id"]
            found.append(entry | ({"score": example.scores[row]} if example.scores else {}))
        return found

    yield {
        **query,
        "positive_passages": listed(example.positives),
        "negative_passages": listed(example.negatives),
    }


def _flagembedding(
    query: dict[str, str], example: Example, passages: pa.Table
) -> Iterator[dict[str, Any]]:
    row: dict[str, Any] = {
        "query": query["query"],
        "pos": _texts(example.positives, passages),
        "neg": _texts(example.negatives, passages),
    }
    if example.scores:
        row["pos_scores"] = [example.scores[each] for each in example.positives.tolist()]
        row["neg_scores"] = [example.scores[each] for each in example.negatives.tolist()]
    yield row
