"""Count n-grams of any number of synthetic words in shards, with a memory limit per job.

    python -m benchmarks.scale_shards --words 2e7 --shards 4 --check     a minute, also in one job
    python -m benchmarks.scale_shards --words 2e9 --shards 24 --folder /scratch     50 GB of disk

Runs the scripts of the rules in workflow/rules/shards.smk, each as a process of its own, one after
the other, and deletes a file after its last reader, as Snakemake does. Fails if a job exceeds the
limit. Own memory excludes mapped files, which the system reclaims when memory is scarce.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks import processes, zipf
from benchmarks.processes import Taken
from benchmarks.tables import table
from cdmae.plan.describe import describe
from cdmae.tokens.corpus import join_tokens

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {"window": 4, "unit": "word"}


class Jobs:
    """The jobs of a run, measured by rule."""

    def __init__(self, folder: Path) -> None:
        """Begin without jobs; `folder` will contain all files."""
        self.folder = folder
        self.disk = 0  # the largest size of all files after a job, in bytes
        self.taken: dict[str, list[Taken]] = defaultdict(list)

    def run(self, rule: str, **options: object) -> None:
        """Run the script of a rule; a list is an option with several values."""
        command = [sys.executable, ROOT / f"workflow/scripts/{rule}.py"]
        for name, value in options.items():
            command.append(f"--{name.replace('_', '-')}")
            command += value if isinstance(value, list) else [value]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.taken[rule].append(processes.measure(command, env=environment))
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        self.disk = max(self.disk, size)

    def rows(self) -> list[dict[str, str]]:
        """Make the table: one row per rule."""
        rows = []
        for rule, taken in self.taken.items():
            rows.append(
                {
                    "rule": rule,
                    "jobs": f"{len(taken):,}",
                    "seconds": f"{sum(each.seconds for each in taken):,.0f}",
                    "cpu-s": f"{sum(each.cpu for each in taken):,.0f}",
                    "longest": f"{max(each.seconds for each in taken):,.0f}",
                    "peak GB": f"{max(each.memory for each in taken) / 1e9:.2f}",
                    "own GB": f"{max(each.own for each in taken) / 1e9:.2f}",
                }
            )
        return rows

    @property
    def own(self) -> int:
        """Return the largest own memory of a job, in bytes."""
        return max(each.own for taken in self.taken.values() for each in taken)


def count(folder: Path, tokens: list[Path], jobs: Jobs, keep_tokens: bool = False) -> Path:
    """Count the n-grams of the shards `tokens`; return the folder of the result."""
    parts = [f"{number}-of-{len(tokens)}" for number in range(1, len(tokens) + 1)]
    settings = json.dumps(SETTINGS)
    words = [folder / f"words/{part}" for part in parts]
    for path, shard in zip(words, tokens, strict=True):
        jobs.run("ngram_words", tokens=shard, settings=settings, output=path)
        if not keep_tokens:
            shutil.rmtree(shard)
    vocabulary = folder / "vocabulary"
    jobs.run("ngram_vocabulary", words=words, output=vocabulary)
    last = SETTINGS["window"] + 1
    counts = {}
    tables = []
    answers: list[Path] = []
    for order in range(2, last + 1):
        keys = [folder / f"keys/{order}/{part}" for part in parts]
        for part, own, path in zip(parts, words, keys, strict=True):
            counts[order, part] = folder / f"counts/{order}/{part}.npy"
            before: dict[str, object] = {}
            if answers:
                before["counts_before"] = counts[order - 1, part]
                before["keys_before"] = folder / f"keys/{order - 1}/{part}"
                before["answers"] = answers
            jobs.run(
                "ngram_keys",
                shard=part,
                order=order,
                words=own,
                vocabulary=vocabulary,
                **before,
                settings=settings,
                counts=counts[order, part],
                keys=path,
            )
            if answers:
                shutil.rmtree(before["keys_before"])
        if answers:
            shutil.rmtree(folder / f"answers/{order - 1}")
        if order == last:
            break
        answers = [folder / f"answers/{order}/{part}" for part in parts]
        for part, path in zip(parts, answers, strict=True):
            tables.append(folder / f"tables/{order}/{part}")
            jobs.run("ngram_counts", keys=keys, part=part, table=tables[-1], answers=path)
    result = folder / "ngrams"
    jobs.run(
        "ngrams_joined",
        vocabulary=vocabulary,
        words=words,
        counts=list(counts.values()),
        tables=tables,
        output=result,
        consume=[],
    )
    return result


def compare(folder: Path, tokens: list[Path], found: Path, jobs: Jobs) -> None:
    """Count the joined shards in one job, and compare the files."""
    join_tokens(folder / "joined", tokens)
    whole = folder / "whole"
    jobs.run("ngrams", tokens=folder / "joined", settings=json.dumps(SETTINGS), output=whole)
    for path in whole.iterdir():
        one = np.memmap(path, np.uint8, "r")
        other = np.memmap(found / path.name, np.uint8, "r")
        if not np.array_equal(one, other):
            sys.exit(f"{path.name} differs from the file of one job")
    print("the files are bit-identical to the files of one job")


def main() -> None:
    """Count n-grams in shards, check the memory limit, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=float, default=2e9)
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--limit", type=float, default=8.0, help="GB of own memory per job")
    parser.add_argument("--check", action="store_true", help="count in one job, too, and compare")
    parser.add_argument("--folder", type=Path, help="a folder with free space")
    given = parser.parse_args()
    print(f"1 thread per job, on {describe()['processor']}", flush=True)
    if given.folder:
        given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        jobs = Jobs(folder)
        passages = round(given.words / zipf.WORDS / given.shards)
        tokens = [folder / f"tokens/{number}" for number in range(given.shards)]
        words = sum(zipf.write_tokens(path, passages, seed) for seed, path in enumerate(tokens))
        print(f"{words:,} words in {given.shards} shards\n", flush=True)
        result = count(folder, tokens, jobs, keep_tokens=given.check)
        size = sum(path.stat().st_size for path in result.iterdir())
        print(table(jobs.rows()), f"\n\n{size / 1e9:.1f} GB of counts", flush=True)
        print(f"at most {jobs.disk / 1e9:.1f} GB of disk", flush=True)
        if jobs.own > given.limit * 1e9:
            sys.exit(f"a job took more than {given.limit} GB")
        if given.check:
            compare(folder, tokens, result, jobs)


if __name__ == "__main__":
    main()
