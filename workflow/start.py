"""Run a command of `workflow.commands`, or Snakemake, inside the environment of `./run`."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
# Snakemake's options that count cores or jobs, and what they allow. With 0, it would start no job
# and wait forever.
COUNTS = {
    "cores": "a whole number from 1, or all",
    "jobs": "a whole number from 1, or unlimited",
    "local_cores": "a whole number from 1",
    "max_threads": "a whole number from 1",
}
sys.path.insert(0, str(ROOT))

from cdmae.cli import ending  # noqa: E402 (the checkout is not installed)
from cdmae.errors import InputError  # noqa: E402
from workflow.circumstances import COMMAND  # noqa: E402


def main(arguments: list[str]) -> None:
    """Run a command of `workflow.commands`, or Snakemake, in this process.

    Raises `InputError` for arguments with which Snakemake would end in a traceback, or run without
    its profile. The Snakefile checks config, targets and surroundings.
    """
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ[COMMAND] = json.dumps(["./run", *arguments])  # for the report
    # transformers would report a model's name to a service
    os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    for option in ("--configfile", "--configfiles", "--config"):
        if arguments.count(option) > 1:
            raise InputError(
                f"{option} is given twice, and only the last one would count; write all values "
                "after a single one"
            )
    from workflow.commands import COMMANDS, command

    if arguments and arguments[0] in COMMANDS:
        command(arguments)
        return
    from snakemake import cli

    from cdmae.config.load import load
    from cdmae.config.reading import gather
    from workflow import overlays
    from workflow.targets import ask

    if arguments[:1] == ["--help-snakemake"]:
        arguments = ["--help"]
    options, files, overrides = read(arguments)
    asked = ask(options.targets)
    working = Path(options.directory or ROOT).absolute()
    working.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(working):
        load(gather(ROOT / "config/config.yaml", files, overrides))
    profile = options.workflow_profile
    if profile not in (None, "none") and not list(Path(profile).glob("*.yaml")):
        raise InputError(
            f"--workflow-profile is {profile}; allowed: a folder with a profile.yaml, or none"
        )
    parser, options = cli.parse_args(arguments)  # with the profile's options
    overlays.hand_over(files or options.configfile)
    options.directory = working
    os.chdir(ROOT)
    options.targets = asked
    # the Snakefile reads config files: Snakemake would run the code in one with __use_yte__
    options.configfile = []
    sys.exit(0 if cli.args_to_api(options, parser) else 1)


def read(arguments: list[str]) -> tuple[Namespace, list[str], dict[str, Any]]:
    """Return Snakemake's options, the config files, and the values of ``--config``.

    Targets are recognised even after ``--configfile``. Raises `InputError` for arguments that
    Snakemake does not accept.
    """
    from snakemake import cli
    from snakemake.exceptions import CliException, WorkflowError

    from workflow.commands import divided

    def refuse(message: str) -> NoReturn:
        raise ValueError(message)

    parser = cli.get_argument_parser()
    parser.error = refuse  # argparse would print its usage: a hundred lines
    try:
        options = parser.parse_args(arguments)
        overrides = cli.parse_config(options.config)
    # also raised for text instead of a number, for --config without a value, and for a resource
    # below 0
    except (CliException, ValueError, WorkflowError) as error:
        hint = "./run --help-snakemake lists the options"
        raise InputError(f"{shlex.join(arguments)}: {error}; {hint}") from None
    for option, allowed in COUNTS.items():
        number = getattr(options, option)
        if number is not None and number < 1:
            raise InputError(f"--{option.replace('_', '-')} is {number}; allowed: {allowed}")
    files, targets = divided(list(map(str, options.configfile)))
    options.targets = [*options.targets, *targets]
    return options, files, overrides


if __name__ == "__main__":
    ending(lambda: main(sys.argv[1:]))
