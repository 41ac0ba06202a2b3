"""Measure the time for masking a batch in milliseconds, for the paper's table 6."""

from pathlib import Path

from cdmae.evaluation.latency import measure
from cdmae.files import write_json
from cdmae.job import run


def main(*, output: Path) -> None:
    """Write the milliseconds of every method."""
    write_json(output, measure())


if __name__ == "__main__":
    run(main, snakemake)
