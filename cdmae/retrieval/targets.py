"""What every search does around the search itself: read a split's queries, leave out what no run may hold, write it.

In some collections of BEIR (ArguAna, Quora) the queries are passages of the collection. BEIR's evaluation drops a
passage with the id of its query; ids alone meet by accident where both are numbered, so here the text must agree, too.
BRIGHT's judgments exclude passages from the ranking of a query by a grade of -100. Both are left out while searching,
and so they are no negatives, either.
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
from cdmae.files import read_json
from cdmae.log import say
from cdmae.runs import Run, write_run

Find = Callable[[int, list[list[str]], int], Run]  # number of a target, queries of splits, depth; one run of them all


def search(collections: Sequence[Path], splits: Sequence[str], outputs: Sequence[Path], depth: int, find: Find) -> None:
    """Write a run per target, `depth` passages a query, by `find`, which is called once for each collection.

    It gets the place of the collection's first target, and the texts of the queries of all its splits.
    """
    for collection in dict.fromkeys(collections):
        numbers = [number for number, folder in enumerate(collections) if folder == collection]
        queries = [read_queries(collection, splits[number]) for number in numbers]
        excluded = [left_out(collection, splits[n], frame) for n, frame in zip(numbers, queries, strict=True)]
        extra = max(int(np.bincount(pairs[:, 0]).max(initial=0)) for pairs in excluded)
        together = find(numbers[0], [frame["text"].tolist() for frame in queries], depth + extra)
        for number, run, pairs in zip(numbers, together.split(map(len, queries)), excluded, strict=True):
            write_run(outputs[number], without(run, pairs, depth) if extra else run)


def left_out(collection: Path, split: str, queries: pd.DataFrame) -> np.ndarray:
    """List what no run of a split may hold, rows of a query and a passage: int64 [n, 2]; say why."""
    own = own_passages(collection, queries)
    asked = np.flatnonzero(own >= 0)
    if len(asked):
        say(f"{len(asked):,} queries of {split} are passages themselves, which are left out of their runs")
    qrels = read_frame(Path(collection) / "qrels.parquet", QRELS)
    excluded = qrels.loc[(qrels["split"] == split) & (qrels["grade"] == EXCLUDED), ["query", "passage"]].to_numpy()
    if len(excluded):
        say(f"{len(excluded):,} judgments of {split} exclude a passage, which is left out of the run of its query")
    return np.concatenate([np.stack([asked, own[asked]], axis=1), excluded.astype(np.int64)])


def own_passages(collection: Path, queries: pd.DataFrame) -> np.ndarray:
    """Find the row of the passage that each query (query_id, text) is, or -1: int64 [Q]."""
    own = np.full(len(queries), -1)
    about = read_json(Path(collection) / "about.json")
    if about.get("source") != "beir" and not about.get("dataset", "").startswith("beir/"):
        return own
    ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    asked = pc.index_in(ids, pa.array(queries["query_id"], pa.string()))
    rows = np.flatnonzero(asked.is_valid().to_numpy(zero_copy_only=False))
    texts = take_passages(collection, rows)["text"].to_pylist()
    for query, row, text in zip(asked.drop_null().to_pylist(), rows.tolist(), texts, strict=True):
        if text.split() == queries["text"].iloc[query].split():
            own[query] = row
    return own


def without(run: Run, left_out: np.ndarray, depth: int) -> Run:
    """Drop some pairs of a query and a passage [n, 2] from a run, and cut it to `depth`."""
    of = np.repeat(np.arange(len(run)), np.diff(run.starts))
    kept = ~np.isin(of << 32 | run.passages, left_out[:, 0] << 32 | left_out[:, 1])
    place = np.cumsum(kept) - kept  # how many are kept before each
    kept &= place - place[np.minimum(run.starts[of], len(of) - 1)] < depth
    starts = np.concatenate([[0], np.cumsum(np.bincount(of[kept], minlength=len(run)))])
    return Run(run.passages[kept], run.scores[kept], starts)
