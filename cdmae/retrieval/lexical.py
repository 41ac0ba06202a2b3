"""Writing BM25's runs for the splits of collections."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from cdmae.ranges import WHOLE
from cdmae.retrieval import bm25, by_queries, targets
from cdmae.runs import Run


def search(
    *,
    indexes: list[Path],
    collections: list[Path],
    splits: list[str],
    outputs: list[Path],
    depth: int,
    k1: float,
    b: float,
    threads: int = 1,
    part: str = WHOLE,
) -> None:
    """Search each collection's index for the queries of its splits, and write a run per split.

    indexes: one per distinct collection. collections, splits, outputs: one per target. part: the
    range of the queries to search, such as 3-of-7; the lists of all other queries are empty.
    """
    index = dict(zip(dict.fromkeys(collections), indexes, strict=True))

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        asked = [*chain(*texts)]
        first, last = by_queries.range_of(part, len(asked))
        run = bm25.search(index[collections[number]], asked[first:last], depth, k1, b, threads)
        return by_queries.among(run, first, len(asked))

    targets.search(collections, splits, outputs, depth, find)
