"""Read a collection in BEIR's layout: your own data, or a BEIR data set (Thakur et al. 2021).

``corpus.jsonl``
    one JSON object per line: ``{"_id": "p1", "title": "...", "text": "..."}``
``queries.jsonl``
    ``{"_id": "q1", "text": "..."}``; optional, because pre-training needs only text
``qrels/{split}.tsv``
    a header, then query id, passage id and grade, separated by tabs; one file per split

Each file may be compressed (``.gz``). The header is optional; its last column is score, grade,
relevance, relevancy, rel or label. Without judgments, all queries form the split ``test``.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from cdmae.collections.judged import Parts
from cdmae.collections.leakage import Holdout, HoldoutSeed
from cdmae.collections.text_files import (
    File,
    Folder,
    by_split,
    check_folder,
    check_readable,
    find,
    grade,
)
from cdmae.errors import InputError
from cdmae.fields import EMPTY, settings, show

_KEYS = ("_id", "text")  # of every passage and query
_COLUMNS = "query id, passage id and grade, separated by tabs"
_MOST_DIGITS = 1000  # of a number; Python itself stops at 4,300
_HEADERS = ("score", "grade", "relevance", "relevancy", "rel", "label")  # of the grade column


@settings
class Settings(Folder):
    """Settings of a collection in BEIR's layout."""

    path: str
    """Folder with corpus.jsonl, queries.jsonl and qrels/{split}.tsv; a relative path begins at the
    working directory.
    """
    titles: bool = True
    """Whether titles are part of the passages [BEIR: title and text joined]."""
    holdout: Holdout = EMPTY
    holdout_seed: HoldoutSeed = 0

    def parts(self) -> Parts:
        """Find the file of passages, and the files of queries and judgments for each split."""
        folder = check_folder(self.path)
        passages = File(find(folder, "corpus", ".jsonl", layout="BEIR's"), _passage(self.titles))
        queries = find(folder, "queries", ".jsonl")
        qrels = {
            split: File(path, _judgment) for split, path in _qrels_paths(folder / "qrels").items()
        }
        if queries is None:
            if qrels:
                raise InputError(
                    f"{folder} holds judgments in qrels but no queries.jsonl or queries.jsonl.gz; "
                    "add one of them"
                )
            return Parts(passages, {}, {})
        by_split = dict.fromkeys(qrels or ["test"], File(queries, _query))
        return Parts(passages, by_split, qrels)


def _qrels_paths(folder: Path) -> dict[str, Path]:
    layout = f"{folder.name}/{{split}}.tsv, such as {folder.name}/test.tsv, with {_COLUMNS}"
    loose = sorted(path.name for path in folder.parent.glob("qrels*") if path.is_file())
    if loose:
        raise InputError(f"{folder.parent / loose[0]} is a file; allowed: a folder with {layout}")
    if not folder.is_dir():
        return {}
    check_readable(folder, str(folder))
    paths = by_split(folder)
    names = sorted(path.name for path in folder.glob("[!.]*"))
    if names and not paths:
        raise InputError(f"{folder} holds {', '.join(names[:3])} but no .tsv; allowed: {layout}")
    return paths


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits; put it in quotation marks")
    return int(digits)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary from the pairs of a JSON object; raise ValueError for a repeated key."""
    entry = dict(pairs)
    if len(entry) < len(pairs):
        times = Counter(key for key, _ in pairs)
        (repeated, _), *_ = times.most_common()
        raise ValueError(f"has the key {show(repeated)} twice; allowed: each key once")
    return entry


def _object(line: str) -> dict[str, Any]:
    """Parse a line as a passage or query; raise ValueError if it is neither."""
    try:
        entry = json.loads(line, object_pairs_hook=_each_once, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not JSON ({error.msg} at column {error.colno}); allowed: one object per line"
        ) from None
    except RecursionError:
        raise ValueError(
            "JSON that is nested too deeply; allowed: one object per line, with text in it"
        ) from None
    if not isinstance(entry, dict):
        raise ValueError(
            f"not a JSON object but {type(entry).__name__}; allowed: an object with the keys "
            f"{_KEYS}"
        )
    for key in _KEYS:
        if key not in entry:
            raise ValueError(f"lacks the key {key!r}; it has {show(sorted(entry))}")
    if isinstance(entry["_id"], int) and not isinstance(entry["_id"], bool):
        entry["_id"] = str(entry["_id"])
    for key in (*_KEYS, "title"):
        value = entry.get(key, "")
        if not isinstance(value, str):
            raise ValueError(f"{key!r} is {json.dumps(value)[:40]}; allowed: text")
        if "\\ud" in line.lower() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(f"{key!r} contains half a surrogate pair, which is not a character")
    if not entry["_id"].strip():
        raise ValueError("'_id' is empty; allowed: an id that is not empty")
    return entry


def _passage(titles: bool) -> Any:
    def parse(number: int, line: str) -> tuple[str, str, str]:
        entry = _object(line)
        title = entry.get("title", "") if titles else ""
        return entry["_id"], title, entry["text"]

    return parse


def _query(number: int, line: str) -> tuple[str, str]:
    entry = _object(line)
    return entry["_id"], entry["text"]


def _judgment(number: int, line: str) -> tuple[str, str, int] | None:
    columns = line.split("\t")
    if len(columns) != 3:
        hint = " (TREC's form has four; remove the second column)" if len(line.split()) == 4 else ""
        raise ValueError(f"{len(columns)} columns separated by tabs{hint}; allowed: {_COLUMNS}")
    if number == 1 and columns[2].strip().lower() in _HEADERS:
        return None  # the header, which some files lack
    try:
        return columns[0], columns[1], grade(columns[2])
    except ValueError as error:
        header = f", or in a header one of {', '.join(_HEADERS)}" if number == 1 else ""
        raise ValueError(f"{error}{header}") from None
