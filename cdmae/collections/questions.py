"""Real questions for one's own documents: a table with a question and the place of its answer.

A row has a question, and the id of a passage, or a file, a heading, or both: all passages of the
file, or below the heading, are relevant. A question may have several rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from cdmae.collections import pair_rows, tables
from cdmae.collections.leakage import key_of
from cdmae.collections.tables import Row
from cdmae.errors import InputError
from cdmae.fields import show

if TYPE_CHECKING:
    import pandas as pd


class Passage(NamedTuple):
    """A passage and its place; headings: those above it, of which it belongs to the last."""

    name: str
    title: str
    text: str
    file: str = ""
    headings: tuple[str, ...] = ()


def read(table: Path, passages: Sequence[Passage]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the queries (query_id, text) of a table, and the judgments of passages.

    Raises `InputError` with its line for a question without a place, or with an unknown one.
    """
    import pandas as pd

    names: dict[str, str] = {}
    texts: dict[str, str] = {}
    relevant: dict[tuple[str, str], int] = {}
    for row in tables.rows(table):
        text = row.text(*pair_rows.QUERY)
        query = names.setdefault(key_of(text), f"question-{len(names) + 1}")
        texts.setdefault(query, text)
        for passage in _answers(row, passages):
            relevant[query, passage.name] = 1
    if not texts:
        raise InputError(f"{table} holds no questions; add rows with a question and its place")
    pairs = pd.DataFrame(list(relevant), columns=["query_id", "passage_id"])
    return pd.DataFrame(list(texts.items()), columns=["query_id", "text"]), pairs.assign(grade=1)


def _answers(row: Row, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages at the place that a row names."""
    found = list(passages)
    given = {what: row.text(*columns, required=False) for what, (columns, _) in PLACES.items()}
    if not any(given.values()):
        columns = ", ".join(map(show, row.values))
        raise row.fault(f"the question has no id, file or heading; the table has {columns}")
    for what, place in given.items():
        if place:
            _, is_at = PLACES[what]
            found = [passage for passage in found if is_at(passage, place)]
        if not found:
            raise row.fault(f"{what} is {show(place)}, of which there is no passage")
    return found


def _has_name(passage: Passage, name: str) -> bool:
    return passage.name == name


def _is_in(passage: Passage, file: str) -> bool:
    """Return whether the path of a passage's file ends with a given one, perhaps without suffix."""
    path = passage.file
    ends = f"/{path}", f"/{PurePosixPath(path).with_suffix('')}" if path else ""
    return any(end.endswith(f"/{file.lstrip('./')}") for end in ends)


def _is_below(passage: Passage, heading: str) -> bool:
    return key_of(heading) in map(key_of, (*passage.headings, passage.title))


# the columns of a table of questions that name the place of an answer
PLACES = {
    "id": (("id", "_id", "passage_id", "docid", "url"), _has_name),
    "file": (("file", "path", "document", "page"), _is_in),
    "heading": (("heading", "section", "title"), _is_below),
}
