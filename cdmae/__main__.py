"""``python -m cdmae``: run a command of `cdmae.commands`, or Snakemake in this checkout."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from cdmae.circumstances import COMMAND
from cdmae.cli import ending

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> None:
    """Run a command in this process, or replace this process by Snakemake.

    Snakemake runs in the checkout, unless ``--directory`` is given.
    """
    os.environ[COMMAND] = json.dumps(["./run", *arguments])  # for the report
    # transformers would report a model's name to a service
    os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    from cdmae.commands import COMMANDS, command

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
    """Collect the config files behind one ``--configfile``, and check them.

    Snakemake would read targets that follow a config file as further files; they move behind
    ``--``. Of two ``--configfile`` it would read only the last.
    """
    from cdmae.commands import divided
    from cdmae.config.reading import gather

    files, others, targets = divided(arguments)
    if not files:
        return arguments
    paths = [str(Path(file).resolve()) for file in files]
    # refuses a file with code, which Snakemake would run
    gather(ROOT / "config/config.yaml", paths)
    return [*others, "--configfile", *paths, *(["--", *targets] if targets else [])]


if __name__ == "__main__":
    ending(lambda: main(sys.argv[1:]))
