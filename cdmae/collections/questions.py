"""Real questions for one's own documents: a table with a question and the place of its answer.

A row has a question, and the id of a passage, or a file, a heading, or both: all passages of the
file, or below the heading, are relevant. A question may have several rows. A name of several files,
or a heading in several files, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cdmae.collections import pair_rows, tables
from cdmae.collections.tables import Row
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.log import say

# the columns of a table of questions that name the place of an answer
PLACES = {
    "id": tables.IDS,
    "file": ("file", "filename", "path", "document", "page"),
    "heading": ("heading", "section", "title"),
}


class Passage(NamedTuple):
    """A passage and its place; headings: those above it, of which it belongs to the last."""

    name: str
    title: str
    text: str
    file: str = ""
    headings: tuple[str, ...] = ()


def read(
    table: Path, split: str, passages: Sequence[Passage]
) -> list[tuple[str, str, str, str, int]]:
    """List the judgments of a table (`cdmae.collections.judged.JUDGED`), one per answer.

    Raises `InputError` with its line for a question without a place, or with an unknown one.
    """
    names: dict[str, str] = {}
    judged = []
    known = {*pair_rows.QUERY, *chain.from_iterable(PLACES.values())}
    for row in tables.rows(table):
        ignored = [] if judged else [show(name) for name in row.values if name not in known]
        if ignored:
            say(f"{table}: ignored columns: {', '.join(ignored)}")
        text = row.text(*pair_rows.QUERY)
        query = names.setdefault(_key(text), f"question-{len(names) + 1}")
        judged += [(split, query, text, passage.name, 1) for passage in _answers(row, passages)]
    if not judged:
        raise InputError(f"{table} holds no questions; add rows with a question and its place")
    return judged


def _answers(row: Row, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages at the place that a row names."""
    found = list(passages)
    given = {what: row.text(*columns, required=False) for what, columns in PLACES.items()}
    if not any(given.values()):
        columns = ", ".join(map(show, row.values))
        raise row.fault(f"the question has no id, file or heading; the table has {columns}")
    for what, place in given.items():
        if place:
            found = [passage for passage in found if _is_at(passage, what, place)]
        if not found:
            names = {name for passage in passages for name in _names(passage, what)}
            near = get_close_matches(place, names, n=1)
            words = f"; did you mean {show(near[0])}?" if near else ""
            raise row.fault(f"{what} is {show(place)}, of which there is no passage{words}")
    files = sorted({passage.file for passage in found})
    if given["file"] in files:  # README.md at the top, not one in a folder
        return [passage for passage in found if passage.file == given["file"]]
    if len(files) > 1:
        what, words = ("file", "the name of") if given["file"] else ("heading", "which is in")
        words += f" {len(files)} files, such as {' and '.join(map(show, files[:2]))}"
        raise row.fault(f"{what} is {show(given[what])}, {words}; expected one of them as file")
    return found


def _names(passage: Passage, what: str) -> list[str]:
    """Return the id, the paths or the headings of a passage."""
    if what == "id":
        return [passage.name]
    if what == "file":
        return [passage.file, PurePosixPath(passage.file).name]
    return [*passage.headings, passage.title]


def _key(text: str) -> str:
    """Return a text in lower case with single spaces; `What is C++?` is not `What is C?`."""
    return " ".join(text.casefold().split())


def _is_at(passage: Passage, what: str, place: str) -> bool:
    """Return whether a passage has an id, is in a file, or is below a heading.

    The path of a file may be its last parts, and may lack the suffix.
    """
    if what == "id":
        return passage.name == place
    if what == "heading":
        return _key(place) in map(_key, _names(passage, what))
    path = PurePosixPath("/", passage.file)
    end = f"/{place.lstrip('./')}"
    return any(str(each).endswith(end) for each in (path, path.with_suffix("")))
