"""What `./run` does inside the environment: one of our commands, or Snakemake with the arguments given.

What Snakemake would answer with a traceback, or hours later, is refused here in a sentence.
"""

from __future__ import annotations

import difflib
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cdmae.errors import InputError, said  # noqa: E402 (the checkout is not installed)
from workflow import surroundings  # noqa: E402
from workflow.commands import COMMANDS, YAML, command, configured, divided  # noqa: E402
from workflow.facts import FIGURES, TABLES  # noqa: E402
from workflow.targets import ALL, patterns, resolved  # noqa: E402


def main(arguments: list[str]) -> None:
    """Run one of our commands, or Snakemake in this process."""
    os.environ["PYTHONPATH"] = str(ROOT)
    if arguments and arguments[0] in COMMANDS:
        command(arguments)
        sys.stdout.flush()
        return
    from snakemake import cli
    from snakemake.exceptions import CliException

    if arguments[:1] == ["--help-snakemake"]:
        arguments = ["--help"]
    try:
        options = cli.get_argument_parser().parse_args(arguments)
    except CliException as error:  # of a number that is none
        raise InputError(f"{shlex.join(arguments)}: {error}") from None
    files, words = divided(list(map(str, options.configfile)))
    targets = [*options.targets, *words]
    check_words(targets)
    os.chdir(ROOT)
    check_surroundings(options)
    config = None if options.config else configured(files)  # with --config Snakemake finds out what is wrong with it
    targets = [resolved(config, target) for target in targets]
    parser, options = cli.parse_args(arguments)  # with those of the profile
    options.targets, options.configfile = targets, list(map(Path, files)) or options.configfile
    sys.exit(0 if cli.args_to_api(options, parser) else 1)


def check_words(targets: list[str]) -> None:
    """Refuse a misspelt command, of which Snakemake would say that no rule makes it."""
    for word in targets:
        if "/" in word or Path(word).suffix in YAML or any(path.exists() for path in (Path(word), ROOT / word)):
            continue
        if word not in (ALL, *patterns(), *TABLES, *FIGURES):
            near = difflib.get_close_matches(word, [*COMMANDS, "test", *TABLES, *FIGURES], n=1, cutoff=0.7)
            raise InputError(
                f"{word} is neither a command nor a rule nor a file; "
                + (f"did you mean {near[0]}?" if near else "./run --help lists what there is")
            )


def check_surroundings(options: argparse.Namespace) -> None:
    """Refuse variables, folders and profiles with which Snakemake would end in a traceback, or run without them."""
    profile = options.workflow_profile
    if profile not in (None, "none") and not list(Path(profile).glob("*.yaml")):
        raise InputError(f"--workflow-profile is {profile}; allowed: a folder with a profile.yaml, or none")
    surroundings.device_here()
    surroundings.check_records(ROOT)
    if options.cache is not None:
        surroundings.check_cache()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT
    except BrokenPipeError:  # its reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains while it ends
        sys.exit(128 + signal.SIGPIPE)
    except InputError as error:
        sys.exit(said(error))
