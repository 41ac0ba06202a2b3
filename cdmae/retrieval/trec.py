"""Runs and judgments as the text files that trec_eval, ir_measures and pyserini read and write.

``query_id Q0 passage_id rank score system`` and ``query_id 0 passage_id grade``. White space separates the columns and
has no place in an id: where one holds some, it is written as in addresses, ``a%20b``, and so is every ``%``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.log import say
from cdmae.runs import Run

WHITE = r"[\s\p{Z}\x{0b}\x{1c}-\x{1f}\x{85}]|^$"  # what str.split() splits at, and nothing at all


def write_run(
    path: Path | str, run: Run, query_ids: Sequence[str], passage_ids: Sequence[str] | pa.Array, system: str
) -> None:
    """Write a run as text. The ids of millions of passages are an Arrow array, a tenth of as many Python objects.

    Those who read it order by score, and equal scores by passage id: so that they find the ranking of the run, an equal
    score is written as the next smaller float32.
    """
    if len(run) != len(query_ids):
        raise InputError(f"the run has {len(run)} queries and the split {len(query_ids)}; delete the run and run again")
    query_ids, passage_ids = names(query_ids, "query"), pa.array(names(passage_ids, "passage"), pa.string())
    with complete(path) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for row, query_id in enumerate(query_ids):
            passages, scores = run.ranked(row)
            found, values = passage_ids.take(pa.array(passages)).to_pylist(), distinct(scores).tolist()
            file.writelines(
                f"{query_id} Q0 {name} {rank} {value:.9g} {system}\n"  # nine digits hold a float32 exactly
                for rank, (name, value) in enumerate(zip(found, values, strict=True), 1)
            )


def distinct(scores: np.ndarray) -> np.ndarray:
    """Scores that go down strictly, float32: a score not below the one before becomes the next smaller number."""
    if np.all(scores[1:] < scores[:-1]):
        return scores
    found = scores.astype(np.float32, copy=True)
    for i in range(1, len(found)):
        if not found[i] < found[i - 1]:
            found[i] = np.nextafter(found[i - 1], np.float32(-np.inf))
    return found


def write_qrels(path: Path | str, qrels: pd.DataFrame, query_ids: Sequence[str], passage_ids: Sequence[str]) -> None:
    """Write judgments (query, passage, grade; rows) as text."""
    query_ids, passage_ids = names(query_ids, "query"), names(passage_ids, "passage")
    with complete(path) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(
            f"{query_ids[query]} 0 {passage_ids[passage]} {grade}\n"
            for query, passage, grade in zip(*(qrels[name] for name in ("query", "passage", "grade")), strict=True)
        )


def read_run(path: Path | str, query_ids: Sequence[str], passage_ids: Sequence[str]) -> Run:
    """Read a run written by any tool, ordered by score and, where scores are equal, by rank as given in the file.

    Unknown ids, a passage named twice for one query and malformed lines are an `InputError` with the line.
    """
    lines: list[list[tuple[float, int, int]]] = [[] for _ in query_ids]
    queries, passages = _rows(names(query_ids, "query")), _rows(names(passage_ids, "passage"))
    seen = set()
    for number, columns in _columns(path, 6, "query id, Q0, passage id, rank, score, system"):
        query, passage = _row(queries, columns[0], path, number), _row(passages, columns[2], path, number)
        if (query, passage) in seen:
            raise InputError(f"{path}, line {number}: passage {columns[2]} stands twice for query {columns[0]}")
        seen.add((query, passage))
        try:
            rank, score = int(columns[3]), float(columns[4])
        except ValueError:
            raise InputError(
                f"{path}, line {number}: rank and score are {columns[3]} and {columns[4]}; allowed: numbers"
            ) from None
        lines[query].append((-score, rank, passage))
    ranked = [sorted(each) for each in lines]
    return Run.of(
        [np.array([passage for _, _, passage in each], np.int32) for each in ranked],
        [-np.array([score for score, _, _ in each], np.float32) for each in ranked],
    )


def read_qrels(path: Path | str, query_ids: Sequence[str], passage_ids: Sequence[str]) -> pd.DataFrame:
    """Read judgments as rows (query, passage, grade), sorted; raises `InputError` with the line."""
    queries, passages = _rows(names(query_ids, "query")), _rows(names(passage_ids, "passage"))
    found = []
    for number, columns in _columns(path, 4, "query id, 0, passage id, grade"):
        query, passage = _row(queries, columns[0], path, number), _row(passages, columns[2], path, number)
        try:
            found.append((query, passage, int(columns[3])))
        except ValueError:
            raise InputError(f"{path}, line {number}: the grade is {columns[3]}; allowed: a whole number") from None
    frame = pd.DataFrame(found, columns=["query", "passage", "grade"])
    frame = frame.astype({"query": np.int32, "passage": np.int32, "grade": np.int16})
    return frame.sort_values(["query", "passage"], kind="stable", ignore_index=True)


def names(ids: Sequence[str] | pa.Array, what: str) -> Sequence[str] | pa.Array:
    """The ids as these files can hold them, distinct like the ids; says so if they are not the ids themselves."""
    odd = pc.sum(pc.match_substring_regex(pa.array(ids, pa.string()), WHITE)).as_py()
    if not odd:
        return ids
    say(f"{odd:,} {what} ids hold white space, which separates the columns: written as in addresses, a%20b")
    ids = ids.to_pylist() if isinstance(ids, pa.Array) else ids
    return [re.sub(r"[\s%\x1c-\x1f]", lambda match: quote(match[0]), each) or "%" for each in ids]


def _columns(path: Path | str, count: int, meaning: str) -> Iterable[tuple[int, list[str]]]:
    with open(path, encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, 1):
                columns = line.split()
                if len(columns) != count:
                    if not columns:
                        continue
                    raise InputError(f"{path}, line {number} has {len(columns)} columns; allowed: {meaning}")
                yield number, columns
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text ({error})") from None


def _rows(names: Sequence[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(names)}


def _row(rows: dict[str, int], name: str, path: Path | str, number: int) -> int:
    if name not in rows:
        raise InputError(f"{path}, line {number}: the collection has no id {name!r}")
    return rows[name]
