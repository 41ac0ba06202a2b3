"""Dividing a job by queries; in the run of one part, the lists of all other queries are empty.

A reranker scores queries in pieces, and jobs are divided only between pieces. The scores are
therefore bit-identical to the scores of a single job.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.ranges import Part
from cdmae.runs import Run, read_run, write_run


def range_of(part: str, queries: int, at_once: int = 1) -> tuple[int, int]:
    """Return the first row of a part such as 3-of-7, and the row that follows its last row.

    Ranges begin at multiples of `at_once` queries.
    """
    first, last = Part.read(part).of(-(-queries // at_once))
    return first * at_once, min(last * at_once, queries)


def among(run: Run, first: int, queries: int) -> Run:
    """Extend a run of queries from row `first` on to `queries` lists; the added ones are empty."""
    after = queries - first - len(run)
    return Run(run.passages, run.scores, np.pad(run.starts, (first, after), "edge"))


def join_runs(runs: list[Path], outputs: list[Path]) -> None:
    """Join the runs of all parts, listed output by output, in the order of the queries."""
    parts = len(runs) // len(outputs)
    for number, output in enumerate(outputs):
        found = [read_run(path) for path in runs[number * parts : (number + 1) * parts]]
        passages = np.concatenate([run.passages for run in found])
        scores = np.concatenate([run.scores for run in found])
        write_run(output, Run(passages, scores, sum(run.starts for run in found)))
