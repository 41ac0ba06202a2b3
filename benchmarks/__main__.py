"""Measure the table of speeds in docs/results.md, and print it from the newest rows of each task.

    python -m benchmarks             everything; half an hour on a machine that does nothing else
    python -m benchmarks --print     the table alone, from benchmarks/results.jsonl

A ratio is the peer's CPU time by ours. `benchmarks.serving` and `benchmarks.gpu` have no peer or
another machine, and are run by themselves.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from tabulate import tabulate

from benchmarks.forms import RESULTS

COMMANDS = (
    "counting",
    "masking",
    "pretraining --vocabulary 4096 --length 64 --size tiny --batch 64 --objective mae",
    "finetuning --head dense",
    "finetuning --head sparse",
    "finetuning --head multi",
    "encoding",
    "search",
    "search --multi",
)


def newest(path: Path) -> list[dict]:
    """Return the newest row of each task, form and precision, except ours."""
    rows: dict[tuple[str, ...], dict] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "ratio" in row and not row["form"].startswith("ours"):
            rows[row["task"], row["form"], row["precision"]] = row
    return list(rows.values())


def markdown(rows: list[dict]) -> str:
    """Return the table: a row per task and peer."""
    lines = []
    for row in rows:
        rounding = " (bfloat16)" if row["precision"] == "bf16" else ""
        machine = f"{row['machine']}, threads: {row['threads']}, {row['date']}, {row['commit']}"
        lines.append((row["task"] + rounding, row["form"], row["ratio"], machine))
    heads = ("task", "peer", "times as fast", "measured")
    return tabulate(lines, heads, "pipe", floatfmt=".1f")


def main() -> None:
    """Run every command, stop at the first that fails, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--print", action="store_true", help="print the table, measure nothing")
    given = parser.parse_args()
    for command in () if given.print else COMMANDS:
        subprocess.run([sys.executable, "-m", *f"benchmarks.{command}".split()], check=True)
    print(markdown(newest(RESULTS)))


if __name__ == "__main__":
    main()
