"""Reading and writing TREC's files, as used by trec_eval, ir_measures and pyserini.

The columns of runs are ``query_id Q0 passage_id rank score system``, and of judgments ``query_id 0
passage_id grade``, separated by white space. White space in ids is percent-encoded (``a%20b``); in
ids with white space, every ``%`` is encoded, too.
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

from cdmae.collections import tables
from cdmae.collections.store import read_passages, read_qrels, read_queries
from cdmae.collections.tables import fault
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import complete
from cdmae.log import say
from cdmae.retrieval.ranking import ranked
from cdmae.runs import Run
from cdmae.runs import read_run as read_parquet

LARGEST = float(np.finfo(np.float32).max)  # the largest score that float32 can represent
COLUMNS = ("query_id", "Q0", "passage_id", "rank", "score", "system")
EXPECTED = f"the 6 columns {' '.join(COLUMNS)}, or the 3 columns query_id passage_id rank"


def export(runs: Path, collection: Path, target: str, system: str, output: Path) -> None:
    """Write a system's run with the ids of its collection.

    runs: the folder of the system's runs; target: the collection and the split, such as
    ``pydocs.dev``.
    """
    run = read_parquet(runs / f"{target}.parquet")
    write_run(output, run, *_ids(collection, target.removeprefix(f"{collection.name}.")), system)


def export_qrels(collection: Path, target: str, output: Path) -> None:
    """Write the judgments of a split, with the ids that `export` writes.

    Negative grades become 0, as in `cdmae.evaluation.measures`. Judged passages that are not in the
    collection are named after the row of their judgment: ``missing-7``.
    """
    split = target.removeprefix(f"{collection.name}.")
    query_ids, passage_ids = map(names, _ids(collection, split), ("query", "passage"))
    with complete(output) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for row, query, passage, grade in read_qrels(collection, split).itertuples():
            is_known = passage < len(passage_ids)
            passage_id = passage_ids[passage] if is_known else f"missing-{row}"
            file.write(f"{query_ids[query]} 0 {passage_id} {max(grade, 0)}\n")


def _ids(collection: Path, split: str) -> tuple[list[str], pa.Array]:
    """Read the ids of a split's queries and of all passages."""
    passages = read_passages(collection, ["passage_id"])
    query_ids = read_queries(collection, split)["query_id"].tolist()
    return query_ids, passages["passage_id"].combine_chunks()


def write_run(
    path: Path | str,
    run: Run,
    query_ids: Sequence[str],
    passage_ids: Sequence[str] | pa.Array,
    system: str,
) -> None:
    """Write a run as text.

    Other programs sort passages by score, and tied passages by id. To preserve the run's ranking,
    tied scores are written as decreasing float32 numbers.
    """
    if len(run) != len(query_ids):
        raise InputError(
            f"the run has {len(run)} queries, but the split has {len(query_ids)}; delete the run "
            "and run again"
        )
    query_ids = names(query_ids, "query")
    passage_ids = names(passage_ids, "passage")
    with complete(path) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for row, query_id in enumerate(query_ids):
            passages, scores = run.ranked(row)
            hits = zip(passages.tolist(), distinct(scores).tolist(), strict=True)
            file.writelines(
                # nine digits hold a float32 exactly
                f"{query_id} Q0 {passage_ids[passage]} {rank} {score:.9g} {system}\n"
                for rank, (passage, score) in enumerate(hits, 1)
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


def names(ids: Sequence[str] | pa.Array, what: str) -> list[str]:
    """Percent-encode distinct ids for TREC files; log a message if this changes any id."""
    ids = pa.array(ids, pa.string()).to_pylist()
    odd = sum(name.split() != [name] for name in ids)
    if not odd:
        return ids
    say(
        f"{odd:,} {what} ids contain white space, which separates columns; it is percent-encoded, "
        "as in a%20b"
    )
    return [re.sub(r"[\s%]", lambda match: quote(match[0]), name) or "%" for name in ids]


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
    frame = _table(path)
    query_of = pd.Index(names(query_ids, "query")).get_indexer(frame["query_id"])
    listed = pd.Index(names(passage_ids, "passage")).get_indexer(frame["passage_id"])
    ranks = pd.to_numeric(frame["rank"], errors="coerce")
    column = "score" if "score" in frame else "rank"
    scores = pd.to_numeric(frame[column], errors="coerce")
    twice = frame.duplicated(["query_id", "passage_id"])
    faults = [
        ("query_id", query_of < 0, "ids of the split"),
        ("passage_id", listed < 0, "ids of the collection"),
        (column, ~(scores.abs() <= LARGEST), "a number of float32"),
        ("passage_id", twice, "each passage of a query once"),
    ]
    for key, wrong, expected in faults:
        if wrong.any():
            row = int(np.argmax(wrong))
            words = f"{key} is {show(frame[key].iloc[row])}; expected {expected}"
            raise fault(path, frame.index[row], words)
    if column == "rank":
        scores = 1 / ranks.clip(lower=1)
    ordered = pd.DataFrame({"query": query_of, "rank": ranks, "score": scores})
    rises = ordered.sort_values(["query", "rank"]).groupby("query")["score"].diff().dropna()
    if len(rises) and (rises > 0).all():
        raise InputError(
            f"{path}: every query's scores rise with the rank, as distances do; the greatest score "
            "must be the best, so write the negative distances"
        )
    run = ranked(query_of, listed, scores.to_numpy(), len(query_ids), depth, ties=ranks)
    counts = np.diff(run.starts)
    if (counts < depth).any():
        short = int((counts < depth).sum())
        empty = int((counts == 0).sum())
        say(
            f"{path}: {short:,} of {len(counts):,} queries have fewer than {depth:,} passages, "
            f"{empty:,} have none"
        )
    return run


def _table(path: Path) -> pd.DataFrame:
    """Read the lines of a run as texts; the index has their numbers, from 1."""
    how = {"sep": r"\s+", "header": None, "dtype": str, "na_values": [""]}
    with tables.opened(path) as file:
        try:
            frame = pd.read_csv(
                file, keep_default_na=False, skip_blank_lines=False, quoting=csv.QUOTE_NONE, **how
            )
        except pd.errors.EmptyDataError:
            raise InputError(f"{path} is empty; expected {EXPECTED}") from None
        except (pd.errors.ParserError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read ({error}); expected {EXPECTED}") from None
    frame.index += 1
    frame = frame.dropna(how="all")
    short = frame.isna().any(axis=1)
    if short.any() or frame.shape[1] not in (3, len(COLUMNS)):
        raise fault(path, int(short.idxmax()), f"expected {EXPECTED}")
    wide = frame.shape[1] == len(COLUMNS)
    return frame.set_axis(COLUMNS if wide else ["query_id", "passage_id", "rank"], axis=1)
