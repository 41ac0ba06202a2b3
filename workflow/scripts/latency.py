"""Measure what masking a batch costs: the paper's table 6."""

from pathlib import Path

from benchmarks.latency import measure
from cdmae import files
from cdmae.command import command


@command
def main(*, output: Path):
    """Write the milliseconds of every method to the JSON file `output`."""
    files.write_json(output, measure())


if __name__ == "__main__":
    main()
