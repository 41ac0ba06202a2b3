"""Reading and writing TREC run files, as used by trec_eval, ir_measures and pyserini.

The columns are ``query_id Q0 passage_id rank score system``, separated by white space. White space
in ids is percent-encoded (``a%20b``); in ids with white space, every ``%`` is encoded, too.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import check_file, complete
from cdmae.log import say
from cdmae.retrieval.ranking import ranked
from cdmae.runs import Run

# matches white space of str.split(), an empty id, and a leading byte order mark, which readers drop
# at the beginning of a file
WHITE = r"[\s\p{Z}\x{0b}\x{1c}-\x{1f}\x{85}]|^$|^\x{feff}"
LARGEST = float(np.finfo(np.float32).max)  # the largest score that float32 can represent
COLUMNS = ("query_id", "Q0", "passage_id", "rank", "score", "system")


def write_run(
    path: Path | str,
    run: Run,
    query_ids: Sequence[str],
    passage_ids: Sequence[str] | pa.Array,
    system: str,
) -> None:
    """Write a run as text; an Arrow array of ids takes a tenth of the memory of a list.

    Other programs sort passages by score, and tied passages by id. To preserve the run's ranking,
    tied scores are written as decreasing float32 numbers.
    """
    if len(run) != len(query_ids):
        raise InputError(
            f"the run has {len(run)} queries, but the split has {len(query_ids)}; delete the run "
            "and run again"
        )
    query_ids = names(query_ids, "query")
    passage_ids = pa.array(names(passage_ids, "passage"), pa.string())
    with complete(path) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for row, query_id in enumerate(query_ids):
            passages, scores = run.ranked(row)
            hits = zip(
                passage_ids.take(pa.array(passages)).to_pylist(),
                distinct(scores).tolist(),
                strict=True,
            )
            file.writelines(
                # nine digits hold a float32 exactly
                f"{query_id} Q0 {name} {rank} {score:.9g} {system}\n"
                for rank, (name, score) in enumerate(hits, 1)
            )


def distinct(scores: np.ndarray) -> np.ndarray:
    """Make scores strictly decreasing, float32: a tied score becomes the next smaller number."""
    if np.all(scores[1:] < scores[:-1]):
        return scores
    falling = scores.astype(np.float32, copy=True)
    for i in range(1, len(falling)):
        if not falling[i] < falling[i - 1]:
            falling[i] = np.nextafter(falling[i - 1], np.float32(-np.inf))
    return falling


def names(ids: Sequence[str] | pa.Array, what: str) -> Sequence[str] | pa.Array:
    """Percent-encode distinct ids for TREC files; log a message if this changes any id."""
    odd = pc.sum(pc.match_substring_regex(pa.array(ids, pa.string()), WHITE)).as_py()
    if not odd:
        return ids
    say(
        f"{odd:,} {what} ids contain white space, which separates columns; it is percent-encoded, "
        "as in a%20b"
    )
    ids = ids.to_pylist() if isinstance(ids, pa.Array) else ids
    return [
        re.sub(r"[\s%\x1c-\x1f]|^\ufeff", lambda match: quote(match[0]), name) or "%"
        for name in ids
    ]


def read_run(
    path: Path | str, query_ids: Sequence[str], passage_ids: Sequence[str] | pa.Array, depth: int
) -> Run:
    """Read the best `depth` passages per query of a third-party run, by score, ties by rank.

    Queries without a line have an empty list. Raises `InputError`, with file and line, for a line
    without six columns, an unknown id, a repeated passage of a query, or a score that is not a
    number.
    """
    lines = read_lines(path)
    for column, known, of in (
        ("query_id", query_ids, "split"),
        ("passage_id", passage_ids, "collection"),
    ):
        rows = pd.Index(names(known, column.removesuffix("_id"))).get_indexer(lines[column])
        _refuse(rows < 0, path, lines[column], f"{column} is", f"expected ids of the {of}")
        lines[column] = rows
    found = (lines[column].to_numpy() for column in ("query_id", "passage_id", "score", "rank"))
    queries, passages, scores, ranks = found
    run = ranked(queries, passages, scores, len(query_ids), depth, ties=ranks)
    counts = np.diff(run.starts)
    if (counts < depth).any():
        short = int((counts < depth).sum())
        empty = int((counts == 0).sum())
        say(
            f"{path}: {short:,} of {len(counts):,} queries have fewer than {depth:,} passages, "
            f"{empty:,} have none"
        )
    return run


def read_lines(path: Path | str) -> pd.DataFrame:
    """Read and check the lines of a run: a frame (query_id, passage_id, rank, score)."""
    lines = _columns(path)
    if lines.empty:
        raise InputError(f"{path} is empty; expected lines of {' '.join(COLUMNS)}")
    for column in ("rank", "score"):
        numbers = pd.to_numeric(lines[column], errors="coerce").astype(np.float64)
        wrong = ~numbers.between(-LARGEST, LARGEST)
        _refuse(wrong, path, lines[column], f"{column} is", "expected a number of float32")
        lines[column] = numbers
    return lines


def _columns(path: Path | str) -> pd.DataFrame:
    """Read the columns of a run as text.

    The file may be compressed, as its name tells. The index is the line number, from 1, because no
    line is skipped.
    """
    options = {
        "sep": r"\s+",
        "header": None,
        "dtype": str,
        "quoting": csv.QUOTE_NONE,
        "skip_blank_lines": False,
        "keep_default_na": False,
        "na_values": [""],
        "index_col": False,  # otherwise, pandas uses surplus columns as an index
    }
    check_file(path)
    expected = f"expected the {len(COLUMNS)} columns {' '.join(COLUMNS)}"
    try:
        lines = pd.read_csv(path, names=[*COLUMNS, "rest"], **options)
    except Exception as error:  # from pandas or from a library of compression
        if longer := re.search(r"in line (\d+), saw (\d+)", str(error)):
            raise InputError(f"{path}, line {longer[1]}: {longer[2]} columns; {expected}") from None
        raise InputError(f"{path} cannot be read ({error}); {expected}") from None
    lines.index += 1
    first = lines[COLUMNS[0]].fillna("")
    _refuse(lines.isna().all(axis=1), path, first, "the line is empty:", "remove it")
    wrong = lines["rest"].notna() | lines[COLUMNS[-1]].isna()
    _refuse(wrong, path, first, f"not {len(COLUMNS)} columns; it begins with", expected)
    twice = lines.duplicated(["query_id", "passage_id"])
    words = "the query has a second line for"
    _refuse(twice, path, lines["passage_id"], words, "expected one line for each passage")
    return lines


def _refuse(
    wrong: np.ndarray | pd.Series, path: Path | str, values: pd.Series, what: str, allowed: str
) -> None:
    """Raise `InputError` for the first wrong line, if any."""
    wrong = np.asarray(wrong)
    if wrong.any():
        line = int(wrong.argmax())
        more = f" (and {wrong.sum() - 1:,} more lines)" if wrong.sum() > 1 else ""
        raise InputError(
            f"{path}, line {values.index[line]}: {what} {show(values.iloc[line])}{more}; {allowed}"
        )
