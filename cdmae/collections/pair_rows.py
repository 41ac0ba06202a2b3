"""Pairs of a query and its passages, in the columns of three libraries.

sentence-transformers
    ``anchor`` or ``query``, ``positive``, ``negative``, ``negative_1``, ``negative_2``, ..., and
    ``label`` or ``score``. A label is 0 or 1 without negatives. With negatives it has one score per
    passage, the positive first, or one margin per negative, by which the positive is better
Tevatron
    ``query_id``, ``query``, ``positive_passages``, ``negative_passages``; a passage has ``docid``,
    ``title`` and ``text``, and here perhaps ``score``
FlagEmbedding
    ``query``, ``pos``, ``neg``, ``pos_scores``, ``neg_scores``

A value may be a list, or in CSV and TSV a list in JSON. A row may have several positives.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdmae.collections import table_files, text_files
from cdmae.collections.table_files import Row, fault
from cdmae.errors import InputError
from cdmae.fields import show

QUERY = ("anchor", "query", "question")
POSITIVE = ("positive", "pos", "positive_passages", "answer", "passage")
NEGATIVES = re.compile(r"negative(_\d+)?|neg|negative_passages")
LABEL = ("label", "score")
TEXT = ("text", "passage", "content", "body")
IDS = ("_id", "id", "docid", "passage_id")


@dataclass(frozen=True)
class Passage:
    """A passage of a row; `name` is its id, and `score` its score, if the row has them."""

    text: str
    title: str = ""
    name: str = ""
    score: float | None = None


@dataclass(frozen=True)
class Pair:
    """A query, its passages, and the scores of all passages, if the row has scores.

    relevant: whether the first passages are relevant. scores: first of the positives, then of
    the negatives; empty without scores. margins: whether the scores are margins, which are
    comparable only for the same positive.
    """

    query: str
    name: str
    positives: list[Passage]
    negatives: list[Passage]
    relevant: bool
    scores: list[float]
    margins: bool


@dataclass(frozen=True)
class Columns:
    """The columns of a table of pairs; in JSONL, a row may lack the others, or have more."""

    query: str
    positive: str

    @classmethod
    def found(cls, path: Path, row: Row, query: str = "", positive: str = "") -> Columns:
        """Find the columns of a table by their names in its first row.

        query, positive: names that override the search. Raises `InputError` if there is no such
        column, or several that could be meant.
        """
        query = _column(path, row, QUERY, "query", query)
        positive = _column(path, row, POSITIVE, "positive", positive)
        return cls(query, positive)

    def pair(self, path: Path, number: int, row: Row) -> Pair:
        """Return a row's pair; raises `InputError` with the row's line for an invalid value."""
        reader = _Reader(path, number, row)
        query = reader.text(self.query)
        positives = reader.passages(self.positive)
        columns = [name for name in row if NEGATIVES.fullmatch(name)]
        negatives = [passage for name in columns for passage in reader.passages(name)]
        if not positives:
            raise reader.fault(f"{self.positive} has no passage; allowed: at least one")
        relevant = True
        margins = False
        own = [passage.score for passage in (*positives, *negatives)]
        scores = [score for score in own if score is not None]
        scores = scores or reader.numbers("pos_scores") + reader.numbers("neg_scores")
        labelled = next((name for name in LABEL if name in row), "")
        label = reader.numbers(labelled) if labelled else []
        if label and not negatives:
            if label not in ([0], [1]):
                raise reader.fault(f"{labelled} is {show(row[labelled])}; allowed: 0 or 1")
            relevant = label == [1]
        elif len(label) == len(negatives) and label:
            scores = [0.0] * len(positives) + [-margin for margin in label]
            margins = True
        else:
            scores = scores or label
        passages = len(positives) + len(negatives)
        if scores and len(scores) != passages:
            raise reader.fault(f"{len(scores)} scores for {passages} passages")
        return Pair(query, reader.name(), positives, negatives, relevant, scores, margins)


def is_table(path: Path, query: str) -> bool:
    """Return whether a file is a table of pairs; a ``.tsv`` without their header is a TREC run."""
    suffix = table_files.suffix_of(path)
    if suffix != ".tsv":
        return bool(suffix)
    _, header = next(text_files.lines(path), (0, ""))
    names = {name.strip('"') for name in header.split("\t")}
    return not names.isdisjoint([query] if query else QUERY)


def read(path: Path, query: str = "", positive: str = "") -> Iterator[tuple[int, Pair]]:
    """Yield the line of each row of a table, and its pair."""
    columns: Columns | None = None
    for number, row in table_files.rows(path):
        if columns is None:
            columns = Columns.found(path, row, query, positive)
        yield number, columns.pair(path, number, row)
    if columns is None:
        raise InputError(f"{path} holds no pairs; add rows, or remove the table from the config")


def read_corpus(path: Path) -> Iterator[tuple[int, Passage]]:
    """Yield the line of each row of a table of passages, and its passage."""
    column = ""
    for number, row in table_files.rows(path):
        column = column or _column(path, row, TEXT, "text", "")
        reader = _Reader(path, number, row)
        name = next((reader.text(key) for key in IDS if row.get(key) not in (None, "")), "")
        yield number, Passage(reader.text(column), reader.text("title", optional=True), name)


def _column(path: Path, row: Row, names: tuple[str, ...], what: str, given: str) -> str:
    """Return the name of a column, given or found by its usual names."""
    known = [given] if given else list(names)
    found = [name for name in known if name in row]
    if len(found) == 1:
        return found[0]
    columns = ", ".join(map(show, row))
    if found:
        raise InputError(f"{path} has several {what} columns: {', '.join(found)}; set `{what}`")
    words = show(given) if given else f"any of {', '.join(names)}"
    raise InputError(f"{path} lacks the {what} column {words}; it has {columns}; set `{what}`")


@dataclass(frozen=True)
class _Reader:
    """Read the values of a row."""

    path: Path
    number: int
    row: Row

    def fault(self, words: str) -> InputError:
        return fault(self.path, self.number, words)

    def text(self, key: str, *, optional: bool = False) -> str:
        """Return a text; numbers are ids."""
        value = self.row.get(key)
        if optional and value is None:
            return ""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not (optional or value.strip()):
            raise self.fault(f"{key} is {show(value)}; allowed: text")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self.fault(f"{key} contains half a surrogate pair, which is not a character")
        return value

    def name(self) -> str:
        """Return the id of the query, if the row has one."""
        return self.text("query_id") if self.row.get("query_id") not in (None, "") else ""

    def passages(self, key: str) -> list[Passage]:
        """Return the passages of a column: a text, or a list of texts or objects."""
        found = []
        for value in self._list(key):
            entry = value if isinstance(value, dict) else {"text": value}
            reader = _Reader(self.path, self.number, {key: entry.get("text"), **entry})
            name = reader.text("docid") if entry.get("docid") not in (None, "") else ""
            score = next(iter(reader.numbers("score")), None) if entry is value else None
            title = reader.text("title", optional=True)
            found.append(Passage(reader.text(key), title, name, score))
        return found

    def numbers(self, key: str) -> list[float]:
        """Return the finite numbers of a column; an empty list if the row has none."""
        found = []
        for value in self._list(key):
            try:
                number = float("nan" if isinstance(value, bool) else value)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            if not math.isfinite(number):
                raise self.fault(f"{key} has {show(value)}; allowed: finite numbers")
            found.append(number)
        return found

    def _list(self, key: str) -> list[Any]:
        """Return the values of a column; in CSV and TSV, a list is written as JSON."""
        value = self.row.get(key)
        in_text = table_files.suffix_of(self.path) in (".csv", ".tsv")
        if in_text and isinstance(value, str) and value.lstrip().startswith("["):
            with contextlib.suppress(ValueError, RecursionError):  # a text with a bracket
                value = json.loads(value)
        if value is None or value == "":
            return []
        return value if isinstance(value, list) else [value]
