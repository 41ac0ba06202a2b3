"""Reading and writing TREC run files, as used by trec_eval, ir_measures and pyserini.

The columns are ``query_id Q0 passage_id rank score system``, separated by white space. White space
in ids is percent-encoded (``a%20b``); in ids with white space, every ``%`` is encoded, too.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cdmae.collections import tables
from cdmae.collections.tables import fault
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import complete
from cdmae.log import say
from cdmae.retrieval.ranking import ranked
from cdmae.runs import Run

# matches white space of str.split(), an empty id, and a leading byte order mark, which readers drop
# at the beginning of a file
WHITE = r"[\s\p{Z}\x{0b}\x{1c}-\x{1f}\x{85}]|^$|^\x{feff}"
LARGEST = float(np.finfo(np.float32).max)  # the largest score that float32 can represent
COLUMNS = ("query_id", "Q0", "passage_id", "rank", "score", "system")
EXPECTED = f"the 6 columns {' '.join(COLUMNS)}, or the 3 columns query_id passage_id rank"


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

    A line has the six columns of TREC, or MS MARCO's three, query_id, passage_id and rank, with the
    score 1 / rank. The file may be compressed. Queries without a line have an empty list. Raises
    `InputError`, with file and line, for a line with other columns, an unknown id, a repeated
    passage of a query, or a score that is not a number.
    """
    path = Path(path)
    query_rows = _rows(names(query_ids, "query"))
    passage_rows = _rows(names(passage_ids, "passage"))
    numbers = array("q")
    queries = array("i")
    passages = array("i")
    scores = array("d")
    ranks = array("d")
    for number, line in tables.lines(path):
        cells = line.split()
        if len(cells) == 3:
            query_id, passage_id, rank = cells
            score = ""
        elif len(cells) == len(COLUMNS):
            query_id, _, passage_id, rank, score, _ = cells
        else:
            raise fault(path, number, f"{len(cells)} columns; expected {EXPECTED}")
        if query_id not in query_rows:
            words = f"query_id is {show(query_id)}; expected ids of the split"
            raise fault(path, number, words)
        if passage_id not in passage_rows:
            words = f"passage_id is {show(passage_id)}; expected ids of the collection"
            raise fault(path, number, words)
        numbers.append(number)
        queries.append(query_rows[query_id])
        passages.append(passage_rows[passage_id])
        ranks.append(_number(path, number, "rank", rank))
        scores.append(_number(path, number, "score", score) if score else 1 / max(1.0, ranks[-1]))
    if not numbers:
        raise InputError(f"{path} is empty; expected lines of {EXPECTED}")
    query_of = np.array(queries)
    listed = np.array(passages)
    twice = pd.DataFrame({"query": query_of, "passage": listed}).duplicated().to_numpy()
    if twice.any():
        first = int(twice.argmax())
        [passage] = [name for name, row in passage_rows.items() if row == listed[first]]
        words = f"the query has a second line for the passage {passage}"
        raise fault(path, numbers[first], words)
    if _is_reversed(query_of, np.array(ranks), np.array(scores)):
        raise InputError(
            f"{path}: every query's scores rise with the rank, as distances do; the greatest score "
            "must be the best, so write the negative distances"
        )
    run = ranked(query_of, listed, np.array(scores), len(query_ids), depth, ties=np.array(ranks))
    counts = np.diff(run.starts)
    if (counts < depth).any():
        short = int((counts < depth).sum())
        empty = int((counts == 0).sum())
        say(
            f"{path}: {short:,} of {len(counts):,} queries have fewer than {depth:,} passages, "
            f"{empty:,} have none"
        )
    return run


def _is_reversed(queries: np.ndarray, ranks: np.ndarray, scores: np.ndarray) -> bool:
    """Return whether scores rise from rank to rank in all queries with more than one passage."""
    order = np.lexsort((ranks, queries))
    following = np.diff(queries[order]) == 0
    rising = (np.diff(ranks[order]) > 0) & (np.diff(scores[order]) > 0)
    return bool(following.any() and rising[following].all())


def _rows(ids: Sequence[str] | pa.Array) -> dict[str, int]:
    """Return the row of each id."""
    listed = ids.to_pylist() if isinstance(ids, pa.Array) else ids
    return {name: row for row, name in enumerate(listed)}


def _number(path: Path, line: int, column: str, text: str) -> float:
    """Read a number that float32 can represent."""
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not abs(number) <= LARGEST:
        words = f"{column} is {show(text)}; expected a number of float32"
        raise fault(path, line, words)
    return number
