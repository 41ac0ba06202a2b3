"""Measure counting, importance and exact search on synthetic collections that grow tenfold.

    python -m benchmarks.scale --passages 100000 --vectors 200000      a minute
    python -m benchmarks.scale --folder /scratch --output results
        MS MARCO's size: 40 GB of disk, half an hour

Counting starts from word-pieces in the form of the rule `tokens` (benchmarks/zipf.py makes them up,
since another benchmark measures tokenising). It runs the scripts of the rules `ngrams` and
`importance`. Search runs over random vectors in the files of the rule `vectors`. Each runs in its
own process. Own memory excludes mapped files (the counts, the tokens, the vectors), which the
system reclaims when memory is scarce.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import processes, zipf
from benchmarks.calling import command
from benchmarks.processes import Taken
from benchmarks.tables import table
from cdmae.arrays import write_array
from cdmae.describe import describe
from cdmae.report import charts
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import read_vectors

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {"window": 4, "unit": "word", "pmi": "min", "normaliser": "order", "edges": "literal"}
SHARES = (0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Point:
    """The cost of a job on a collection of some items (words, or vectors)."""

    job: str
    items: int
    taken: Taken

    def row(self, unit: str) -> dict[str, str]:
        """Write a line of the table."""
        taken = self.taken
        return {
            "job": self.job,
            f"million {unit}": f"{self.items / 1e6:,.1f}",
            "seconds": f"{taken.seconds:,.1f}",
            "cpu-s": f"{taken.cpu:,.1f}",
            f"million {unit} per cpu-s": f"{self.items / taken.cpu / 1e6:.2f}",
            "peak GB": f"{taken.memory / 1e9:.2f}",
            "own GB": f"{taken.own / 1e9:.2f}",
            f"own bytes per {unit[:-1]}": f"{taken.own / self.items:.1f}",
        }


# --- counting and importance ----------------------------------------------------------------------


def counting(folder: Path, passages: int, threads: int) -> list[Point]:
    """Count and score a collection."""
    tokens, ngrams, importance = (folder / name for name in ("tokens", "ngrams", "importance"))
    words = zipf.write_tokens(tokens, passages)
    common = {"tokens": tokens, "settings": SETTINGS, "threads": threads}
    scored = common | {"ngrams": ngrams, "output": importance}
    points = [
        Point("n-grams", words, _script("ngrams", **common, output=ngrams)),
        Point("importance", words, _script("importance", **scored)),
    ]
    for output in (tokens, ngrams, importance):
        shutil.rmtree(output)
    return points


def _script(rule: str, **values: object) -> Taken:
    return processes.measure(command(f"workflow.scripts.{rule}:main", **values), cwd=ROOT)


# --- search ---------------------------------------------------------------------------------------


def searching(
    folder: Path, vectors: int, dimensions: int, queries: int, depth: int, threads: int
) -> Point:
    """Search random vectors in files."""
    shards = folder / "vectors"
    shards.mkdir()
    rng = np.random.default_rng(0)
    for number, first in enumerate(range(0, vectors, inference.SHARD)):
        size = (min(inference.SHARD, vectors - first), dimensions)
        write_array(shards / f"{number:05d}.npy", rng.standard_normal(size, np.float32))
    given = ["--search", shards, "--queries", queries, "--depth", depth, "--threads", threads]
    taken = processes.measure([sys.executable, "-m", "benchmarks.scale", *given], cwd=ROOT)
    shutil.rmtree(shards)
    return Point(f"search, {dimensions} dimensions", vectors, taken)


def search_shards(folder: Path, queries: int, depth: int, threads: int) -> None:
    """Run the measurements."""
    shards = read_vectors(folder)
    asked = np.random.default_rng(1).standard_normal((queries, shards[0].shape[1]), np.float32)
    search(asked, shards, depth, threads=threads)


# --- all of it ------------------------------------------------------------------------------------


def figure(name: str, title: str, y_axis: str, points: list[Point], values: list[float]) -> str:
    """Draw the cost per item at every size: level lines are costs that grow with the collection."""
    jobs = list(dict.fromkeys(point.job for point in points))
    series = []
    for colour, job in enumerate(jobs):
        y = [value for point, value in zip(points, values, strict=True) if point.job == job]
        series.append(charts.Series(job, range(len(y)), y, colour))
    names = [f"{share:.0%}" for share in SHARES]
    drawn = charts.lines(
        name,
        title,
        series,
        x_axis="of the collection",
        y_axis=y_axis,
        x_names=names,
        low=0.0,
        markers=True,
    )
    return drawn.standalone()


def report(output: Path, unit: str, points: list[Point]) -> None:
    """Print the table of some jobs, and draw seconds and memory per item."""
    print(table([point.row(unit) for point in points]), end="\n\n", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    million = f"million {unit}"
    times = [point.taken.cpu / point.items * 1e6 for point in points]
    memory = [point.taken.own / 1e9 for point in points]
    for what, title, axis, values in (
        ("time", f"Processor seconds per {million}", "s", times),
        ("memory", "Own memory at the peak", "GB", memory),
    ):
        name = f"scale-{unit}-{what}"
        (output / f"{name}.svg").write_text(
            figure(name, title, axis, points, values), encoding="utf-8"
        )


def main() -> None:
    """Measure counting and search at every size; print the tables and draw the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--passages", type=int, default=8_841_823, help="for counting; 0 leaves it out"
    )
    parser.add_argument(
        "--vectors", type=int, default=3_000_000, help="for search; 0 leaves it out"
    )
    parser.add_argument("--dimensions", type=int, nargs="+", default=[768, 128])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where there is room for what is made up")
    parser.add_argument("--output", type=Path, default=Path("."), help="where the pictures go")
    parser.add_argument("--search", type=Path, help="internal: search the vectors of this folder")
    given = parser.parse_args()
    if given.search:
        search_shards(given.search, given.queries, given.depth, given.threads)
        return
    print(f"{given.threads} threads, on {describe()['processor']}\n", flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.passages:
            sizes = [max(1, round(share * given.passages)) for share in SHARES]
            report(
                given.output,
                "words",
                [point for size in sizes for point in counting(folder, size, given.threads)],
            )
            print("both modes of counting left the same bytes\n")
        if given.vectors:
            sizes = [max(1, round(share * given.vectors)) for share in SHARES]
            asked = (given.queries, given.depth, given.threads)
            points = [
                searching(folder, size, width, *asked)
                for width in given.dimensions
                for size in sizes
            ]
            report(given.output, "vectors", points)


if __name__ == "__main__":
    main()
