"""``python -m cdmae``: run a command of `cdmae.commands`, or Snakemake in this checkout."""

from __future__ import annotations

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

from cdmae.circumstances import COMMAND
from cdmae.cli import ending
from cdmae.errors import InputError

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> None:
    """Run a command in this process, or replace this process by Snakemake.

    Snakemake runs in the checkout, unless ``--directory`` is given.
    """
    os.environ[COMMAND] = json.dumps(["./run", *arguments])  # for the report
    # transformers would report a model's name to a service
    os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    from cdmae.commands import command

    if command(arguments):
        return
    if arguments[:1] == ["--help-snakemake"]:
        arguments = ["--help"]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *for_snakemake(arguments)])


def for_snakemake(arguments: list[str]) -> list[str]:
    """Add the Snakefile and its folder, and collect the config files behind one ``--configfile``.

    Of several ``--configfile``, Snakemake would read only the last, and targets that follow a
    config file as further files; they move behind ``--``.
    """
    from cdmae.commands import divided
    from cdmae.config.reading import gather

    where = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(ROOT)]
    words = [part for word in arguments for part in word.split("=", 1)]
    for option, profile in pairwise(words):
        if option == "--workflow-profile" and profile != "none" and not Path(profile).exists():
            raise InputError(f"--workflow-profile is {profile}; expected an existing folder")
    files, others, targets = divided(arguments)
    if not files:
        return [*where, *arguments]
    paths = [str(Path(file).resolve()) for file in files]
    # refuses a file with code, which Snakemake would run
    gather(ROOT / "config/config.yaml", paths)
    return [*where, *others, "--configfile", *paths, *(["--", *targets] if targets else [])]


if __name__ == "__main__":
    ending(lambda: main(sys.argv[1:]))
