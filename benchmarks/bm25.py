"""BM25, index and search: ours beside pyserini through Python objects, which is what its guides show.

    python -m benchmarks.bm25                                            text by Zipf's law, half a minute
    python -m benchmarks.bm25 --collection results/collections/pydocs    its own text and dev queries

Both rank with Lucene from the same jar, and the benchmark fails unless every ranking is the same. pyserini's hits end
as arrays, too, as everything after a search needs them. Ours indexes first and so pays for warming Java up.
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
import pyarrow as pa

from benchmarks.tables import table
from cdmae.collections.store import read_passages, read_queries
from cdmae.retrieval import bm25, lucene


def made_up(count: int, queries: int) -> tuple[pa.Table, list[str]]:
    """Passages of 20 to 89 words by Zipf's law, and queries of 6 words."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 30_001)
    words = np.array([f"w{i:x}" for i in rng.permutation(30_000)])
    lengths = rng.integers(20, 90, count)
    drawn = words[rng.choice(30_000, int(lengths.sum()), p=share / share.sum())]
    texts = [" ".join(each) for each in np.split(drawn, np.cumsum(lengths)[:-1])]
    asked = words[rng.choice(30_000, (queries, 6), p=share / share.sum())]
    names = [f"{row:0{len(str(count))}}" for row in range(count)]
    return pa.table({"passage_id": names, "title": [""] * count, "text": texts}), [" ".join(each) for each in asked]


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, the seconds on the clock and those of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path)
    parser.add_argument("--passages", type=int, default=20_000, help="of the made-up text")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    if given.collection:
        passages = read_passages(given.collection, ["passage_id", "title", "text"])
        queries = read_queries(given.collection, "dev")["text"].tolist()[: given.queries]
    else:
        passages, queries = made_up(given.passages, given.queries)
    rows = []

    def row(name: str, wall: float, cpu: float, unit: str, count: int) -> None:
        rows.append(
            {
                "": name,
                "seconds": f"{wall:.2f}",
                "cpu-s": f"{cpu:.2f}",
                f"ms/{unit}": f"{1000 * wall / count:.3f}",
                f"cpu-ms/{unit}": f"{1000 * cpu / count:.3f}",
            }
        )

    with tempfile.TemporaryDirectory() as folder:
        _, *ours_start = timed(lucene.machine)
        _, *ours_build = timed(lambda: bm25.build(passages, f"{folder}/ours", given.threads))
        os.environ.setdefault("OPENAI_API_KEY", "none")  # pyserini imports OpenAI's client, which insists on one
        peer, *peer_start = timed(lambda: __import__("pyserini.search.lucene", fromlist=["LuceneSearcher"]))
        _, *peer_build = timed(lambda: build_with_pyserini(passages, f"{folder}/peer", given.threads))
        searcher = peer.LuceneSearcher(f"{folder}/peer")
        warm = queries[: max(1, len(queries) // 5)]  # Java compiles what it has run a few thousand times
        for text in warm:
            searcher.search(text, k=given.depth)
        bm25.search(f"{folder}/ours", warm, given.depth, threads=given.threads)
        one, *peer_search = timed(lambda: [arrays(searcher.search(text, k=given.depth)) for text in queries])
        names = [str(i) for i in range(len(queries))]
        many, *peer_batch = timed(
            lambda: [
                arrays(hits)
                for hits in batched(searcher.batch_search(queries, names, given.depth, given.threads), names)
            ]
        )
        run, *ours_search = timed(lambda: bm25.search(f"{folder}/ours", queries, given.depth, threads=given.threads))
    for number in range(len(queries)):
        for found in (one[number], many[number]):
            np.testing.assert_array_equal(run.ranked(number)[0], found[0])
            np.testing.assert_allclose(run.ranked(number)[1], found[1], rtol=0, atol=1e-4 + 1e-6 * given.depth)
    start = [{"": "pyserini", "start": f"{peer_start[0]:.1f} s"}, {"": "ours", "start": f"{ours_start[0]:.1f} s"}]
    print(table(start), end="\n\n")
    row("pyserini", *peer_build, "passage", len(passages))
    row(f"ours, {given.threads} threads", *ours_build, "passage", len(passages))
    print(f"index {len(passages):,} passages\n{table(rows)}\n")
    rows.clear()
    row("pyserini, search", *peer_search, "query", len(queries))
    row(f"pyserini, batch_search, {given.threads} threads", *peer_batch, "query", len(queries))
    row(f"ours, {given.threads} threads", *ours_search, "query", len(queries))
    print(f"search {len(queries):,} queries to depth {given.depth:,}: the same rankings\n{table(rows)}")
    print(f"\n{peer_search[1] / ours_search[1]:.1f} x less processor time than search, ", end="")
    print(f"{peer_batch[1] / ours_search[1]:.1f} x less than batch_search")


def build_with_pyserini(passages: pa.Table, folder: str, threads: int) -> None:
    """Index with pyserini's own indexer."""
    from pyserini.index.lucene import LuceneIndexer

    indexer = LuceneIndexer(folder, threads=threads)
    width = len(str(len(passages)))
    for start in range(0, len(passages), 10_000):
        texts = enumerate(passages["text"].slice(start, 10_000).to_pylist(), start)
        indexer.add_batch_dict([{"id": f"{row:0{width}}", "contents": text} for row, text in texts])
    indexer.close()


def batched(found: dict[str, Any], names: list[str]) -> list[Any]:
    """The hits of each query in order; pyserini gives none for a query without any."""
    return [found.get(name, []) for name in names]


def arrays(hits: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows and scores of pyserini's hits."""
    return np.array([int(hit.docid) for hit in hits], np.int32), np.array([hit.score for hit in hits], np.float32)


if __name__ == "__main__":
    main()
