"""What every search does around the search itself: read a split's queries, leave out their own passages, write the run.

In some collections of BEIR (ArguAna, Quora) the queries are passages of the collection. BEIR's evaluation drops a
passage with the id of its query; ids alone meet by accident where both are numbered, so here the text must agree, too.
It is dropped while searching, and so is no negative either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cdmae.files.collections import ROW_GROUP, read_queries, stream_passages, take_passages
from cdmae.files.outputs import read_json
from cdmae.files.runs import Run, write_run
from cdmae.progress import say

Find = Callable[[int, list[list[str]], int], list[Run]]  # number of a target, queries of splits, depth; their runs


def search(collections: Sequence[Path], splits: Sequence[str], outputs: Sequence[Path], depth: int, find: Find) -> None:
    """Write a run per target, `depth` passages a query, by `find`, which is called once for each collection.

    It gets the place of the collection's first target, and the texts of the queries of all its splits.
    """
    for collection in dict.fromkeys(collections):
        numbers = [number for number, each in enumerate(collections) if each == collection]
        queries = [read_queries(collection, splits[number]) for number in numbers]
        own = [own_passages(collection, each) for each in queries]
        extra = int(any((each >= 0).any() for each in own))
        runs = find(numbers[0], [each["text"].tolist() for each in queries], depth + extra)
        for number, run, left_out in zip(numbers, runs, own, strict=True):
            if count := int((left_out >= 0).sum()):
                say(f"{count:,} queries of {splits[number]} are passages themselves, which are left out of their runs")
            write_run(outputs[number], without(run, left_out, depth) if extra else run)


def own_passages(collection: Path, queries: pd.DataFrame) -> np.ndarray:
    """The row of the passage that each query (query_id, text) is, or -1: int64 [Q]."""
    none = np.full(len(queries), -1)
    about = read_json(Path(collection) / "about.json")
    if about.get("source") != "beir" and not about.get("dataset", "").startswith("beir/"):
        return none
    rows = _rows(collection, pa.array(queries["query_id"], pa.string()))
    same = np.flatnonzero(rows >= 0)
    texts = take_passages(collection, rows[same])["text"].to_pylist()
    for query, text in zip(same, texts, strict=True):
        if text.split() == queries["text"].iloc[query].split():
            none[query] = rows[query]
    return none


def _rows(collection: Path, ids: pa.Array) -> np.ndarray:
    """The rows of the passages with these ids, -1 where there is none: int64."""
    rows, done = np.full(len(ids), -1), 0
    for passages in stream_passages(collection, ["passage_id"], rows=ROW_GROUP):
        found = pc.index_in(passages["passage_id"].combine_chunks(), ids)
        here = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        rows[found.drop_null().to_numpy()] = done + here
        done += len(passages)
    return rows


def without(run: Run, own: np.ndarray, depth: int) -> Run:
    """The run without passage ``own[q]`` for query q, cut to `depth`."""
    of = np.repeat(np.arange(len(run)), np.diff(run.starts))
    kept = run.passages != own[of]
    place = np.cumsum(kept) - kept  # how many are kept before each
    kept &= place - place[np.minimum(run.starts[of], len(of) - 1)] < depth
    starts = np.zeros(len(run) + 1, dtype=np.int64)
    np.cumsum(np.bincount(of[kept], minlength=len(run)), out=starts[1:])
    return Run(run.passages[kept], run.scores[kept], starts)
