"""Real questions for one's own documents: a table with a question and the place of its answer.

A row has a question, and the id of a passage, or a file, a heading, or both: all passages of the
file, or below the heading, are relevant. A question may have several rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from cdmae.collections import pair_rows, tables
from cdmae.collections.leakage import key_of
from cdmae.collections.tables import Row
from cdmae.errors import InputError
from cdmae.fields import show, suggestion

if TYPE_CHECKING:
    import pandas as pd

IDS = ("id", "_id", "passage_id", "docid", "url")
FILE = ("file", "path", "document", "page")
HEADING = ("heading", "section", "title")


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
    name = row.text(*IDS, required=False)
    file = row.text(*FILE, required=False)
    heading = row.text(*HEADING, required=False)
    if not (name or file or heading):
        columns = ", ".join(map(show, row.values))
        raise row.fault(f"the question has no id, file or heading; the table has {columns}")
    found = passages
    if name:
        found = [passage for passage in found if passage.name == name]
        _check(row, "id", name, found, (passage.name for passage in passages))
    if file:
        found = [passage for passage in found if _is_file(passage.file, file)]
        _check(row, "file", file, found, (passage.file for passage in passages))
        files = sorted({passage.file for passage in found})
        if len(files) > 1:
            raise row.fault(f"file is {show(file)}, which could be {' or '.join(files)}")
    if heading:
        wanted = key_of(heading)
        among = found
        found = [each for each in found if wanted in map(key_of, (*each.headings, each.title))]
        _check(row, "heading", heading, found, (part for each in among for part in each.headings))
    return list(found)


def _is_file(path: str, given: str) -> bool:
    """Return whether a path in the folder ends with a given one, which may lack its suffix."""
    ends = f"/{path}", f"/{PurePosixPath(path).with_suffix('')}" if path else ""
    return any(end.endswith(f"/{given.lstrip('./')}") for end in ends)


def _check(row: Row, what: str, given: str, found: Sequence[Passage], known: Iterator[str]) -> None:
    if not found:
        near = suggestion(given, list(dict.fromkeys(filter(None, known)))[:1000])
        near = near if near.startswith("did") else "see passages.parquet or `./run search` for ids"
        raise row.fault(f"{what} is {show(given)}, of which there is no passage; {near}")
