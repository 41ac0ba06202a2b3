"""What `./run` does inside the environment: one of our commands, or Snakemake with the arguments given.

A config file that is missing or malformed is refused here in a sentence; Snakemake would answer with a traceback.
"""

from __future__ import annotations

import difflib
import os
import re
import signal
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cdmae.config.schema import Config  # noqa: E402 (the checkout is not installed)
from cdmae.errors import InputError, said  # noqa: E402
from workflow import surroundings  # noqa: E402
from workflow.commands import COMMANDS, YAML, command, configured  # noqa: E402
from workflow.facts import FIGURES, TABLES  # noqa: E402
from workflow.targets import ALL, ALONE, check_target, patterns  # noqa: E402

FLAGS = ("-n", "--dry-run", "-f", "--force", "-F", "--forceall", "-k", "--keep-going", "-p", "--printshellcmds",
         "--rerun-incomplete", "--ri")  # fmt: skip
# Options of Snakemake that take any number of values: everything up to the next option.
LISTS = ("--cache", "--resources", "--res", "--set-threads", "--set-resources", "--set-scatter",
         "--set-resource-scopes", "--default-resources", "--default-res", "--preemptible-rules", "--config", "-C",
         "--envvars", "--rerun-triggers", "--forcerun", "-R", "--consider-ancient", "--prioritize", "-P", "--until",
         "-U", "--omit-from", "-O", "--strict-dag-evaluation", "--groups", "--group-components", "--cleanup-metadata",
         "--cm", "--quiet", "-q", "--wait-for-files", "--omit-flags", "--unneeded-temp-files", "--allowed-rules",
         "--shared-fs-usage", "--logger", "--software-deployment-method", "--deployment-method", "--deployment",
         "--sdm", "--target-jobs")  # fmt: skip
COMPLETE = re.compile(r"=|^-[cj]\d+$")  # options that have their value


def main(arguments: list[str]) -> None:
    """Run one of our commands, or become Snakemake."""
    os.environ["PYTHONPATH"] = str(ROOT)
    if arguments and arguments[0] in COMMANDS:
        command(arguments)
        sys.stdout.flush()
        return
    if arguments[:1] == ["--help-snakemake"]:
        os.execv(sys.executable, [sys.executable, "-m", "snakemake", "--help"])
    check_words(arguments)
    arguments, overlays = sorted_out(arguments)
    os.chdir(ROOT)
    check_profile(arguments)
    check_surroundings(arguments)
    if not any(word.partition("=")[0] == "--config" or word.startswith("-C") for word in arguments):
        config = configured(overlays)  # what is wrong with it is said now; with --config Snakemake finds it out
        check_targets(arguments, config)
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])


def targets(arguments: list[str]) -> list[str]:
    """List what is asked for by name: neither an option, nor what follows one and may be its value."""
    names, before, listed = [], "", False
    for word in arguments:
        if word.startswith("-"):
            listed = word in LISTS
        elif not listed and (not before.startswith("-") or before in FLAGS or COMPLETE.search(before)):
            names.append(word)
        before = word
    return names


def check_words(arguments: list[str]) -> None:
    """Refuse a misspelt command, of which Snakemake would say that no rule makes it."""
    for word in targets(arguments):
        if "/" in word or Path(word).suffix in YAML or any(path.exists() for path in (Path(word), ROOT / word)):
            continue
        if word not in (ALL, *patterns(), *TABLES, *FIGURES):
            near = difflib.get_close_matches(word, [*COMMANDS, "test", *TABLES, *FIGURES], n=1, cutoff=0.7)
            raise InputError(
                f"{word} is neither a command nor a rule nor a file; "
                + (f"did you mean {near[0]}?" if near else "./run --help lists what there is")
            )


def check_profile(arguments: list[str]) -> None:
    """Refuse a profile that is not there: Snakemake runs without it, on this machine instead of the cluster."""
    for before, word in pairwise([part for argument in arguments for part in argument.split("=", 1)]):
        if before == "--workflow-profile" and word != "none" and not list(Path(word).glob("*.yaml")):
            raise InputError(f"--workflow-profile is {word}; allowed: a folder with a profile.yaml, or none")


def check_surroundings(arguments: list[str]) -> None:
    """Refuse variables and folders with which Snakemake would end in a traceback."""
    surroundings.device_here()
    surroundings.check_records(ROOT)
    if any(argument.partition("=")[0] == "--cache" for argument in arguments):
        surroundings.check_cache()


def check_targets(arguments: list[str], config: Config) -> None:
    """Refuse a result that no job makes, and a rule that needs to know which of its results is meant."""
    for word in targets(arguments):
        path = os.path.normpath(word).removeprefix(f"{ROOT}/")
        of_results = f"{path}/".startswith(f"{config.results.rstrip('/')}/") and not Path(path).is_file()
        if of_results or path in {*patterns(), *TABLES, *FIGURES} - {*ALONE}:
            check_target(config, word)


def sorted_out(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Make the paths of config files absolute, because Snakemake runs in the checkout; list them.

    Without the suffix .yaml or .yml, what follows a config file is a target, which Snakemake would read as a config.
    """
    targets, options, files = [], [], []
    after = 0  # how many arguments ago --configfile was, 0 when it is over
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name in ("--configfile", "--configfiles"):
            files += [str(Path(value).resolve())] if equals else []
            options.append(f"{name}={files[-1]}" if equals else argument)
            after = 0 if equals else 1
            continue
        after = 0 if argument.startswith("-") else after and after + 1
        if after == 2 or (after and Path(argument).suffix in YAML):
            files.append(str(Path(argument).resolve()))
            options.append(files[-1])
        else:
            (targets if after else options).append(argument)
    return targets + options, files


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
