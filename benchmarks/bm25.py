"""Compare BM25 by Anserini's commands with pyserini's objects, for indexing and search.

    python -m benchmarks.bm25        text by Zipf's law, half a minute
    python -m benchmarks.bm25 --collection results/collections/pydocs   its own text and dev queries

Both rank with Lucene from the same jar, and the benchmark fails unless every ranking is the same.
pyserini's hits are converted to arrays, too, because later steps need arrays. Our form indexes
first, so its time includes Java's warm-up.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.tables import table
from cdmae.collections.store import Collection, read_passages, read_queries, write_collection
from cdmae.retrieval import bm25


def made_up(folder: Path, count: int, queries: int) -> None:
    """Write passages of 20 to 89 words by Zipf's law, and queries of 6 words."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 30_001)
    words = np.array([f"w{i:x}" for i in rng.permutation(30_000)])
    lengths = rng.integers(20, 90, count)
    drawn = words[rng.choice(30_000, int(lengths.sum()), p=share / share.sum())]
    texts = [" ".join(text) for text in np.split(drawn, np.cumsum(lengths)[:-1])]
    asked = words[rng.choice(30_000, (queries, 6), p=share / share.sum())]
    passages = pa.table(
        {"passage_id": [str(row) for row in range(count)], "title": [""] * count, "text": texts}
    )
    dev = pd.DataFrame(
        {
            "query_id": [str(row) for row in range(queries)],
            "text": [" ".join(text) for text in asked],
        }
    )
    write_collection(folder, Collection(passages, {"dev": dev}, {}, {}))


def main() -> None:
    """Measure indexing and search with both interfaces, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--collection", type=Path)
    parser.add_argument("--passages", type=int, default=20_000, help="of the made-up text")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    depth = options.depth
    threads = options.threads
    rows = []

    def timed(name: str, function: Callable[[], Any]) -> Any:
        wall = time.perf_counter()
        cpu = time.process_time()
        result = function()
        wall = time.perf_counter() - wall
        cpu = time.process_time() - cpu
        rows.append({"": name, "seconds": f"{wall:.2f}", "cpu-s": f"{cpu:.2f}"})
        return result

    with tempfile.TemporaryDirectory() as place:
        collection = options.collection or Path(place, "collection")
        if not options.collection:
            made_up(collection, options.passages, options.queries)
        queries = read_queries(collection, "dev")["text"].tolist()[: options.queries]
        timed("ours, index", lambda: bm25.build(collection, f"{place}/ours", threads))
        run = timed(
            "ours, search", lambda: bm25.search(f"{place}/ours", queries, depth, threads=threads)
        )
        os.environ.setdefault(
            "OPENAI_API_KEY", "none"
        )  # pyserini imports OpenAI's client, which requires a key
        timed("pyserini, import", lambda: __import__("pyserini.search.lucene"))
        timed("pyserini, index", lambda: build_with_pyserini(collection, f"{place}/peer", threads))
        hits = timed(
            "pyserini, search",
            lambda: search_with_pyserini(f"{place}/peer", queries, depth, threads),
        )
    for number, (passages, scores) in enumerate(hits):
        np.testing.assert_array_equal(run.ranked(number)[0], passages)
        np.testing.assert_allclose(run.ranked(number)[1], scores, rtol=0, atol=2e-6)
    print(
        f"{len(queries):,} queries to depth {depth:,}, {threads} threads: the same rankings\n"
        f"{table(rows)}"
    )


def build_with_pyserini(collection: Path, folder: str, threads: int) -> None:
    """Index with pyserini's own indexer."""
    from pyserini.index.lucene import LuceneIndexer

    indexer = LuceneIndexer(folder, threads=threads)
    passages = read_passages(collection, ["title", "text"]).to_pylist()
    rows = [
        {"id": f"{row:010}", "contents": " ".join(passage.values())}
        for row, passage in enumerate(passages)
    ]
    for start in range(0, len(rows), 10_000):
        indexer.add_batch_dict(rows[start : start + 10_000])
    indexer.close()


def search_with_pyserini(
    folder: str, queries: list[str], depth: int, threads: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rows and scores of pyserini's hits; pyserini omits queries without hits."""
    from pyserini.search.lucene import LuceneSearcher

    names = [str(number) for number in range(len(queries))]
    lists = LuceneSearcher(folder).batch_search(queries, names, depth, threads)
    hits = [lists.get(name, []) for name in names]
    return [
        (np.array([int(hit.docid) for hit in some]), np.array([hit.score for hit in some]))
        for some in hits
    ]


if __name__ == "__main__":
    main()
