"""Writing BM25's runs for the splits of collections."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from cdmae.retrieval import bm25, targets
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
) -> None:
    """Search each collection's index for the queries of its splits, and write a run per split.

    indexes: one per distinct collection. collections, splits, outputs: one per target.
    """
    index = dict(zip(dict.fromkeys(collections), indexes, strict=True))

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        asked = [*chain(*texts)]
        return bm25.search(index[collections[number]], asked, depth, k1, b, threads)

    targets.search(collections, splits, outputs, depth, find)
