"""Searching for the queries of splits, and writing the runs, for systems of any kind.

In some collections, such as BEIR's ArguAna and Quora, the queries are passages. BEIR's evaluation
drops a passage with the id of its query. If queries and passages are simply numbered, equal ids may
be accidental. Here, a passage is therefore dropped only if its text is equal, too.
BRIGHT's judgments exclude passages from a query's ranking by a grade of -100. Runs omit both kinds
of passages, which are therefore never negatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cdmae.arrays import read_frame
from cdmae.collections.store import EXCLUDED, QRELS, read_passages, read_queries, take_passages
from cdmae.log import say
from cdmae.models.ragged import starts_of
from cdmae.runs import Run, write_run

# (index of a target, the queries of each split, depth) -> one run for all queries
Find = Callable[[int, list[list[str]], int], Run]


def search(
    collections: Sequence[Path],
    splits: Sequence[str],
    outputs: Sequence[Path],
    depth: int,
    find: Find,
) -> None:
    """Write a run of `depth` passages per query for each target.

    `find` is called once per collection, with the index of the collection's first target and the
    texts of the queries of all its splits.
    """
    for collection in dict.fromkeys(collections):
        numbers = [number for number, folder in enumerate(collections) if folder == collection]
        queries = [read_queries(collection, splits[number]) for number in numbers]
        excluded = [
            left_out(collection, splits[number], frame)
            for number, frame in zip(numbers, queries, strict=True)
        ]
        extra = max(int(np.bincount(pairs[:, 0]).max(initial=0)) for pairs in excluded)
        texts = [frame["text"].tolist() for frame in queries]
        runs = find(numbers[0], texts, depth + extra).split(map(len, queries))
        for number, run, pairs in zip(numbers, runs, excluded, strict=True):
            write_run(outputs[number], without(run, pairs, depth) if extra else run)


def left_out(collection: Path, split: str, queries: pd.DataFrame) -> np.ndarray:
    """Return the pairs (query, passage) that a run must not rank, int64 [n, 2]; log the reason."""
    own = own_passages(collection, queries)
    asked = np.flatnonzero(own >= 0)
    if len(asked):
        say(f"{len(asked):,} queries of {split} are also passages, which their rankings omit")
    qrels = read_frame(Path(collection) / "qrels.parquet", QRELS)
    which = (qrels["split"] == split) & (qrels["grade"] == EXCLUDED)
    excluded = qrels.loc[which, ["query", "passage"]].to_numpy()
    if len(excluded):
        say(f"{len(excluded):,} judgments of {split} exclude a passage from its query's ranking")
    return np.concatenate([np.stack([asked, own[asked]], axis=1), excluded.astype(np.int64)])


def own_passages(collection: Path, queries: pd.DataFrame) -> np.ndarray:
    """Find the row of the passage with the id and text of each query, or -1: int64 [Q]."""
    own = np.full(len(queries), -1)
    ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    asked = pc.index_in(ids, pa.array(queries["query_id"], pa.string()))
    rows = np.flatnonzero(asked.is_valid().to_numpy(zero_copy_only=False))
    texts = take_passages(collection, rows)["text"].to_pylist()
    for query, row, text in zip(asked.drop_null().to_pylist(), rows.tolist(), texts, strict=True):
        if text.split() == queries["text"].iloc[query].split():
            own[query] = row
    return own


def without(run: Run, left_out: np.ndarray, depth: int) -> Run:
    """Drop pairs (query, passage) [n, 2] from a run, and keep the best `depth` of the others."""
    query_of = np.repeat(np.arange(len(run)), np.diff(run.starts))
    dropped = left_out[:, 0] << 32 | left_out[:, 1]
    kept = np.flatnonzero(~np.isin(query_of << 32 | run.passages, dropped))
    ranks = pd.Series(query_of[kept]).groupby(query_of[kept]).cumcount()
    kept = kept[ranks.to_numpy() < depth]
    starts = starts_of(np.bincount(query_of[kept], minlength=len(run)))
    return Run(run.passages[kept], run.scores[kept], starts)
