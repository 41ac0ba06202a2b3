"""Fuse the runs of several systems into one run per target."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.errors import InputError
from cdmae.files import read_json
from cdmae.retrieval.fusion import Fusion
from cdmae.runs import read_run, write_run


def main(*, weights: Path, runs: list[Path], outputs: list[Path], depth: int):
    """Fuse the runs of several systems.

    runs: for each output in turn, one run of every system that `weights` names.
    """
    about = read_json(weights)
    systems = len(about["systems"])
    if len(runs) != systems * len(outputs):
        raise InputError(
            f"--runs has {len(runs)} files; allowed: {systems} for each of {len(outputs)} outputs"
        )
    for number, output in enumerate(outputs):
        parts = [read_run(path) for path in runs[number * systems : (number + 1) * systems]]
        write_run(output, Fusion(parts, about["method"], about["k"]).run(about["weights"], depth))


if __name__ == "__main__":
    run_command(main)
