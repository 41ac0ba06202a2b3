"""The commands of ``./run`` that Snakemake lacks: functions, whose signatures are their options.

Heavy packages are imported inside functions, so that every command starts at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from cdmae.cli import call
from cdmae.commands.checking import check
from cdmae.commands.exporting import export
from cdmae.commands.planning import plan
from cdmae.commands.proposing import new
from cdmae.commands.querying import importance, search
from cdmae.commands.serving import serve

CONFIGFILE = "--configfile"
YAML = (".yaml", ".yml")
COMMANDS = {
    function.__name__: function
    for function in (new, plan, search, serve, importance, export, check)
}

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for function in COMMANDS.values():
    app.command()(function)


def command(arguments: list[str]) -> None:
    """Run a command. Raises `InputError` for an argument that does not fit."""
    words = repeated("--config", each_file(arguments), lambda word: "=" in word)
    call(app, words, "./run")


def each_file(arguments: list[str]) -> list[str]:
    """Repeat ``--configfile`` before each of several files that follow it.

    The first word after the option is a file, and so is every further one that ends in .yaml or
    .yml.
    """
    words = []
    for word in arguments:
        option, _, file = word.partition("=")
        if option in (CONFIGFILE, f"{CONFIGFILE}s"):
            words += [CONFIGFILE, file] if file else [CONFIGFILE]
        else:
            words.append(word)
    return repeated(CONFIGFILE, words, lambda word: Path(word).suffix in YAML)


def repeated(option: str, arguments: list[str], goes_on: Callable[[str], bool]) -> list[str]:
    """Repeat an option before each of its values, as typer expects; Snakemake's take several.

    goes_on: whether a word that follows a value is a further value.
    """
    words: list[str] = []
    for word in arguments:
        if words[-2:-1] == [option] and not word.startswith("-") and goes_on(word):
            words.append(option)
        words.append(word)
    return words
