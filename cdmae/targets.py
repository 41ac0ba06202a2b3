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

from cdmae import files
from cdmae.files import Run
from cdmae.progress import say

Find = Callable[[int, list[str], int], Run]  # number of the target, texts of the queries, depth


def search(collections: Sequence[Path], splits: Sequence[str], outputs: Sequence[Path], depth: int, find: Find) -> None:
    """Write a run per target, `depth` passages a query, by `find`."""
    for number, (collection, split, output) in enumerate(zip(collections, splits, outputs, strict=True)):
        queries = files.read_queries(collection, split)
        own = own_passages(collection, queries)
        extra = int((own >= 0).any())
        run = find(number, queries["text"].tolist(), depth + extra)
        if extra:
            say(f"{(own >= 0).sum():,} queries of {split} are passages themselves, which are left out of their runs")
            run = without(run, own, depth)
        files.write_run(output, run)


def own_passages(collection: Path, queries: pd.DataFrame) -> np.ndarray:
    """The row of the passage that each query (query_id, text) is, or -1: int64 [Q]."""
    none = np.full(len(queries), -1)
    about = files.read_json(Path(collection) / "about.json")
    if about.get("source") != "beir" and not about.get("dataset", "").startswith("beir/"):
        return none
    ids = files.read_passages(collection, ["passage_id"])["passage_id"].to_pandas()
    rows = pd.Index(ids).get_indexer(queries["query_id"])
    same = np.flatnonzero(rows >= 0)
    if not len(same):
        return none
    texts = files.read_passages(collection, ["text"])["text"].take(pa.array(rows[same])).to_pylist()
    for query, text in zip(same, texts, strict=True):
        if text.split() == queries["text"].iloc[query].split():
            none[query] = rows[query]
    return none


def without(run: Run, own: np.ndarray, depth: int) -> Run:
    """The run without passage ``own[q]`` for query q, cut to `depth`."""
    of = np.repeat(np.arange(len(run)), np.diff(run.starts))
    kept = run.passages != own[of]
    place = np.cumsum(kept) - kept  # how many are kept before each
    kept &= place - place[np.minimum(run.starts[of], len(of) - 1)] < depth
    starts = np.zeros(len(run) + 1, dtype=np.int64)
    np.cumsum(np.bincount(of[kept], minlength=len(run)), out=starts[1:])
    return Run(run.passages[kept], run.scores[kept], starts)
