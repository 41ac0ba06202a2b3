"""Measuring a run: ours beside ir_measures on the TREC file of the same run.

    python -m benchmarks.evaluation                     1,000 queries x 1000
    python -m benchmarks.evaluation --queries 6980      as many as MS MARCO's dev set has

The values per query are the same, or the benchmark fails.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd

from benchmarks.tables import table
from cdmae import trec
from cdmae.files.runs import Run, read_run, write_run
from cdmae.measures import measure

MEASURES = ["RR@10", "R@50", "R@1000", "nDCG@10", "AP@1000"]


def made_up(queries: int, depth: int, passages: int) -> tuple[Run, pd.DataFrame]:
    """A run with ties, and one to three judgments a query, some of them within reach."""
    rng = np.random.default_rng(0)
    rows = [rng.choice(passages, depth, replace=False).astype(np.int32) for _ in range(queries)]
    scores = [np.sort(rng.integers(0, 10 * depth, depth))[::-1].astype(np.float32) for _ in range(queries)]
    judged = [
        (query, int(passage), int(grade))
        for query in range(queries)
        for passage, grade in dict(
            zip(rng.choice(rows[query], rng.integers(1, 4)).tolist(), rng.integers(0, 4, 3), strict=False)
        ).items()
    ]
    return Run.of(rows, scores), pd.DataFrame(judged, columns=["query", "passage", "grade"]).astype(np.int32)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--passages", type=int, default=1_000_000)
    given = parser.parse_args()
    run, qrels = made_up(given.queries, given.depth, given.passages)
    query_ids, passage_ids = [f"q{i}" for i in range(given.queries)], [f"p{i}" for i in range(given.passages)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trec.write_run(folder / "run.trec", run, query_ids, passage_ids, "ours")
        trec.write_qrels(folder / "qrels.trec", qrels, query_ids, passage_ids)
        write_run(folder / "run.parquet", run)
        wall, cpu = time.perf_counter(), time.process_time()
        parsed = [ir_measures.parse_measure(each) for each in MEASURES]
        judged = list(ir_measures.read_trec_qrels(str(folder / "qrels.trec")))
        found = ir_measures.iter_calc(parsed, judged, ir_measures.read_trec_run(str(folder / "run.trec")))
        expected = {(each.query_id, str(each.measure)): each.value for each in found}
        peer = time.perf_counter() - wall, time.process_time() - cpu
        wall, cpu = time.perf_counter(), time.process_time()
        frame = measure(read_run(folder / "run.parquet"), qrels, query_ids, MEASURES)
        ours = time.perf_counter() - wall, time.process_time() - cpu
    assert len(frame) == len(expected)
    for query_id, measured, value in frame.itertuples(index=False):
        assert abs(value - expected[query_id, measured]) < 1e-9, (query_id, measured)
    rows = [
        {"": name, "seconds": f"{taken[0]:.2f}", "cpu-s": f"{taken[1]:.2f}", "x ours": f"{taken[1] / ours[1]:.1f}"}
        for name, taken in (("ir_measures on a TREC file", peer), ("ours, reading included", ours))
    ]
    print(f"{given.queries:,} queries x {given.depth:,}, {len(MEASURES)} measures: the same values\n{table(rows)}")


if __name__ == "__main__":
    main()
