"""Pairs of a query and its passages, in the columns of four libraries.

sentence-transformers
    ``anchor`` or ``query``, ``positive``, ``negative``, ``negative_1``, ``negative_2``, ..., and
    ``label`` or ``score``. A label is 0 or 1 without negatives. With negatives it has one score per
    passage, the positive first, or one margin per negative, by which the positive is better
Tevatron
    ``query_id``, ``query``, ``positive_passages``, ``negative_passages``; a passage has ``docid``,
    ``title`` and ``text``, and here perhaps ``score``
FlagEmbedding
    ``query``, ``pos``, ``neg``, ``pos_scores``, ``neg_scores``
DPR
    ``question``, ``positive_ctxs``, ``negative_ctxs``, ``hard_negative_ctxs``; a passage has
    ``passage_id``, ``title``, ``text``, and perhaps ``score``

A value may be a list. A row may have several positives. If it has one, the columns ``id`` or
``url``, and ``title`` or ``heading``, belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from cdmae.collections import tables
from cdmae.collections.tables import IDS, TITLE, Row
from cdmae.errors import InputError
from cdmae.fields import show

QUERY = ("anchor", "query", "question")
POSITIVE = ("positive", "pos", "positive_passages", "positive_ctxs", "answer", "passage", "context")
NEGATIVES = re.compile(r"negative(_\d+)?|neg|negative_passages|(hard_)?negative_ctxs")
LABEL = ("label", "score")
OTHERS = ("query_id", "pos_scores", "neg_scores")


@dataclass(frozen=True)
class Passage:
    """A passage of a row; `name` is its id, and `score` its score, if the row has them.

    of_corpus: whether it is in a table of passages.
    """

    text: str
    title: str = ""
    name: str = ""
    score: float | None = None
    of_corpus: bool = False


@dataclass(frozen=True)
class Pair:
    """A query, its passages, and the scores of all passages, if the row has scores.

    relevant: whether the first passages are relevant. scores: first of the positives, then of
    the negatives; empty without scores.
    """

    query: str
    name: str
    positives: list[Passage]
    negatives: list[Passage]
    relevant: bool
    scores: list[float]


def read(path: Path, query: str = "", positive: str = "") -> Iterator[tuple[int, Pair]]:
    """Yield the line of each row of a table, and its pair.

    query, positive: the columns of the first row, if their names are not the usual ones.
    """
    columns: tuple[str, str] | None = None
    for row in tables.rows(path):
        columns = columns or _columns(row, query, positive)
        yield row.number, _pair(row, *columns)
    if columns is None:
        raise InputError(f"{path} holds no pairs; add rows, or remove the table from the config")


def ignored(path: Path, query: str = "", positive: str = "") -> list[str]:
    """List the columns of the first row that `read` does not read."""
    for row in islice(tables.rows(path), 1):
        read = {*_columns(row, query, positive), *IDS, *TITLE, *LABEL, *OTHERS}
        return [name for name in row.values if name not in read and not NEGATIVES.fullmatch(name)]
    return []


def _columns(row: Row, query: str, positive: str) -> tuple[str, str]:
    return column(row, QUERY, "query", query), column(row, POSITIVE, "positive", positive)


def column(row: Row, names: tuple[str, ...], what: str, given: str = "") -> str:
    """Return the name of a column of a table, given or found by its usual names in a row."""
    known = [given.casefold()] if given else list(names)
    found = [name for name in known if name in row.values]
    if len(found) == 1:
        return found[0]
    remedy = f"set `{what}` or --{what}"
    if found:
        several = ", ".join(found)
        raise InputError(f"{row.path} has several {what} columns: {several}; {remedy} to one")
    words = show(given) if given else f"any of {', '.join(names)}"
    columns = ", ".join(map(show, row.values))
    raise InputError(f"{row.path} lacks the {what} column {words}; it has {columns}; {remedy}")


def _pair(row: Row, query: str, positive: str) -> Pair:
    """Return a row's pair; raises `InputError` with the row's line for an invalid value."""
    asked = row.text(query)
    positives = _passages(row, positive)
    columns = [name for name in row.values if NEGATIVES.fullmatch(name)]
    negatives = [passage for name in columns for passage in _passages(row, name)]
    if not positives:
        raise row.fault(f"{positive} has no passage; expected at least one")
    if len(positives) == 1 and not positives[0].name:
        name = row.text(*IDS, required=False)
        titles = [each for each in TITLE if each not in (query, positive)]
        title = positives[0].title or row.text(*titles, required=False)
        positives = [replace(positives[0], name=name, title=title)]
    relevant = True
    own = [passage.score for passage in (*positives, *negatives)]
    scores = row.numbers("pos_scores") + row.numbers("neg_scores") if None in own else own
    labelled = next((name for name in LABEL if name in row.values), "")
    label = row.numbers(labelled) if labelled else []
    if label and not negatives:
        if label not in ([0], [1]):
            words = "expected 0 or 1; rename the column if it is no label"
            raise row.fault(f"{labelled} is {show(row.values[labelled])}; {words}")
        relevant = label == [1]
    elif len(label) == len(negatives) and label:
        scores = [0.0] * len(positives) + [-margin for margin in label]
    else:
        scores = scores or label
    passages = len(positives) + len(negatives)
    if scores and len(scores) != passages:
        raise row.fault(f"{len(scores)} scores for {passages} passages")
    name = row.text("query_id", required=False)
    return Pair(asked, name, positives, negatives, relevant, scores)


def _passages(row: Row, key: str) -> list[Passage]:
    """Return the passages of a column: a text, or a list of texts or objects."""
    found = []
    for value in row.values_of(key):
        inner = Row(row.path, row.number, value if isinstance(value, dict) else {key: value})
        name, title, text = inner.passage(texts=("text", key))
        score = next(iter(inner.numbers("score")), None)
        found.append(Passage(text, title, name, score))
    return found
