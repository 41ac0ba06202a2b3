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
import pyarrow.parquet as pq

from cdmae.collections.store import EXCLUDED, read_passages, read_queries, take_passages
from cdmae.log import say
from cdmae.models.ragged import starts_of
from cdmae.runs import Run, Target, write_run

# (a target, texts of its queries, depth) -> their run
Find = Callable[[Target, list[str], int], Run]


def search(targets: Sequence[Target], depth: int, find: Find) -> None:
    """Write a run of `depth` passages per query for each target."""
    for target in targets:
        queries = read_queries(target.folder, target.split)
        excluded = left_out(target.folder, target.split, queries)
        extra = int(np.bincount(excluded[:, 0]).max(initial=0))
        run = find(target, queries["text"].tolist(), depth + extra)
        write_run(target.output, without(run, excluded, depth))


def left_out(collection: Path, split: str, queries: pd.DataFrame) -> np.ndarray:
    """Return the pairs (query, passage) that a run must not rank, int64 [n, 2]; log the reason."""
    own = own_passages(collection, queries)
    asked = np.flatnonzero(own >= 0)
    if len(asked):
        say(f"{len(asked):,} queries of {split} are also passages, which their rankings omit")
    file = pq.ParquetFile(Path(collection) / "qrels.parquet", page_checksum_verification=True)
    qrels = file.read().to_pandas()
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
    queries = run.queries
    dropped = left_out[:, 0] << 32 | left_out[:, 1]
    kept = ~np.isin(queries << 32 | run.passages, dropped)
    starts = starts_of(np.bincount(queries[kept], minlength=len(run)))
    return Run(run.passages[kept], run.scores[kept], starts).best(depth)
