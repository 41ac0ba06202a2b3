"""Merge a retriever's runs that were made for ranges of the passages."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.retrieval import parts


def main(*, runs: list[Path], outputs: list[Path], depth: int):
    """Merge the runs of all parts, which are listed by output."""
    size = len(runs) // len(outputs)
    by_part = [run for part in range(size) for run in runs[part::size]]
    parts.merge_runs(by_part, outputs, depth)


if __name__ == "__main__":
    run_command(main)
