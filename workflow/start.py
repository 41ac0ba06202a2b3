"""Run a command of `workflow.commands`, or Snakemake, inside the environment of `./run`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cdmae.circumstances import COMMAND  # noqa: E402 (the checkout is not installed)
from cdmae.cli import ending  # noqa: E402
from cdmae.errors import InputError  # noqa: E402


def main(arguments: list[str]) -> None:
    """Run a command in this process, or replace this process by Snakemake.

    Snakemake runs in the checkout, unless ``--directory`` is given.
    """
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ[COMMAND] = json.dumps(["./run", *arguments])  # for the report
    # transformers would report a model's name to a service
    os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    from workflow.commands import COMMANDS, command

    if arguments and arguments[0] in COMMANDS:
        command(arguments)
        return
    if arguments[:1] == ["--help-snakemake"]:
        arguments = ["--help"]
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    snakemake += ["--directory", str(ROOT), *ordered(arguments)]
    sys.stdout.flush()
    os.execv(sys.executable, snakemake)


def ordered(arguments: list[str]) -> list[str]:
    """Move targets that follow ``--configfile FILE...`` to the front, and check the files.

    Snakemake would read targets as config files, and of two ``--configfile`` only the last.
    """
    from cdmae.config.reading import gather
    from workflow.commands import divided

    options = [index for index, word in enumerate(arguments) if word in CONFIGFILE]
    if len(options) > 1:
        raise InputError(
            "--configfile is given twice, and only the last one would count; write all files after "
            "a single one"
        )
    if not options:
        return arguments
    first = options[0] + 1
    last = first
    while last < len(arguments) and not arguments[last].startswith("-"):
        last += 1
    files, targets = divided(arguments[first:last])
    # refuses a file with code, which Snakemake would run
    gather(ROOT / "config/config.yaml", files)
    return [*targets, *arguments[:first], *files, *arguments[last:]]


CONFIGFILE = ("--configfile", "--configfiles")

if __name__ == "__main__":
    ending(lambda: main(sys.argv[1:]))
