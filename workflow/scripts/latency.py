"""Measure what masking a batch costs: the paper's table 6."""

from pathlib import Path

from benchmarks.latency import measure
from cdmae.command import command
from cdmae.files.outputs import write_json


@command
def main(*, output: Path):
    """Write the milliseconds of every method to the JSON file `output`."""
    write_json(output, measure())


if __name__ == "__main__":
    main()
