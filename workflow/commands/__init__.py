"""The commands of ``./run`` that Snakemake lacks.

The signatures of these functions define the command lines; their docstrings are the help texts.
"""

from __future__ import annotations

from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from cdmae.cli import read_arguments
from cdmae.errors import InputError
from workflow.commands.asking import importance, search
from workflow.commands.exporting import export
from workflow.commands.measuring import check
from workflow.commands.planning import plan
from workflow.commands.proposing import new
from workflow.commands.serving import serve

YAML = (".yaml", ".yml")


def command(arguments: list[str]) -> None:
    """Run one command of this module with the options from the command line."""
    name, *rest = arguments
    positional, options = read(name, rest)
    COMMANDS[name](*positional, **options)


def read(name: str, arguments: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the positional arguments of a command, and its options by name."""
    options = read_arguments(COMMANDS[name], arguments, f"./run {name}")
    after: list[str] = []
    if "configfile" in options:
        options["configfile"], after = divided(options["configfile"])
    kinds = {key: each.kind for key, each in signature(COMMANDS[name]).parameters.items()}
    positional = [key for key, kind in kinds.items() if kind is Parameter.VAR_POSITIONAL]
    if after and not positional:
        raise InputError(f"{after[0]} is not a config file; ./run {name} --help lists the options")
    given = [word for key in positional for word in options.pop(key)]
    return [*given, *after], options


def divided(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split the words after --configfile into config files and other words.

    The first word is a file, and so is every word that ends in .yaml or .yml.
    """
    files = [word for place, word in enumerate(arguments) if not place or Path(word).suffix in YAML]
    return [str(Path(file).resolve()) for file in files], [
        word for word in arguments if word not in files
    ]


COMMANDS = {
    "new": new,
    "plan": plan,
    "search": search,
    "serve": serve,
    "importance": importance,
    "export": export,
    "check": check,
}
