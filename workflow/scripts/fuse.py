"""Several systems as one."""

from pathlib import Path

from cdmae.cli import command
from cdmae.errors import InputError
from cdmae.retrieval import fusion
from cdmae.runs import read_run, write_run


@command
def main(*, runs: list[Path], outputs: list[Path], k: float, depth: int):
    """Fuse the runs of several systems by reciprocal rank: for each output in turn, one run of every system."""
    systems, rest = divmod(len(runs), len(outputs))
    if rest or not systems:
        raise InputError(f"--runs are {len(runs)} and --outputs {len(outputs)}; allowed: as many runs for every output")
    for number, output in enumerate(outputs):
        parts = [read_run(path) for path in runs[number * systems : (number + 1) * systems]]
        write_run(output, fusion.reciprocal_rank(parts, k, depth))
