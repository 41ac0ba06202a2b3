"""BM25's runs over the splits of collections, and the published triples that may stand in the place of negatives."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdmae.collections import triples as published
from cdmae.collections.sources import ir_datasets
from cdmae.collections.store import read_passages, read_queries
from cdmae.fields import parse
from cdmae.retrieval import bm25, targets
from cdmae.runs import Run, write_run


def search(
    *,
    indexes: list[Path],
    collections: list[Path],
    splits: list[str],
    outputs: list[Path],
    depth: int,
    k1: float,
    b: float,
    triples: dict[str, Any] | None = None,
    threads: int = 1,
) -> None:
    """Search for the queries of each split in its collection and write the run to the output in its place.

    For each collection once its index. `triples`, if any, are read instead: their name and the settings of the
    collection; the file is fetched when it is not there.
    """
    if triples:
        own = {key: value for key, value in triples.items() if key not in ("name", "source")}
        path = ir_datasets.triples_file(parse(ir_datasets.Settings, own, "triples"), triples["name"])
        for collection, split, output in zip(collections, splits, outputs, strict=True):
            queries = pa.array(read_queries(collection, split)["query_id"], pa.string())
            passages = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
            write_run(output, published.read(path, queries, passages, depth))
        return
    index = dict(zip(dict.fromkeys(collections), indexes, strict=True))

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        return bm25.search(index[collections[number]], [*chain(*texts)], depth, k1, b, threads)

    targets.search(collections, splits, outputs, depth, find)
