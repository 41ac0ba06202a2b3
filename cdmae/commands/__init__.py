"""The commands of ``./run`` that Snakemake lacks: functions, whose signatures are their options.

Heavy packages are imported inside functions, so that every command starts at once.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import typer
from typer import TyperException

from cdmae.commands.checking import check
from cdmae.commands.exporting import export
from cdmae.commands.planning import plan
from cdmae.commands.proposing import new
from cdmae.commands.querying import importance, search
from cdmae.commands.serving import serve
from cdmae.errors import InputError

CONFIGFILE = ("--configfile", "--configfiles")
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


def command(arguments: list[str]) -> bool:
    """Run a command, and return whether the first argument names one.

    Raises `InputError` for an argument that does not fit, and for a misspelt name.
    """
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        # no rule has a name that is so similar; Snakemake would only refuse the command's options
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.85)
        if near:
            raise InputError(f"{name} is not a command; did you mean {near[0]}?")
        return False
    try:
        app(repeated(arguments), prog_name="./run", standalone_mode=False)
    except TyperException as error:
        words = f"{error.format_message()} (./run {name} --help lists the options)"
        raise InputError(words) from None
    return True


def repeated(arguments: list[str]) -> list[str]:
    """Repeat options before each of their values, as typer expects; Snakemake's take several."""
    files, others, further = divided(arguments)
    words: list[str] = []
    for word in [*others, *further]:
        if words[-2:-1] == ["--config"] and "=" in word:
            words.append("--config")
        words.append(word)
    for file in files:
        words += [CONFIGFILE[0], file]
    return words


def divided(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Divide arguments into config files, other words, and the words that follow config files.

    The first word after ``--configfile`` is a file, and so is every further one that ends in .yaml
    or .yml. Raises `InputError` for an option without a file, such as an empty variable of a shell.
    """
    files: list[str] = []
    others: list[str] = []
    further: list[str] = []
    place = others
    before = ""
    for word in arguments:
        option, _, value = word.partition("=")
        if option in CONFIGFILE:
            files.append(value)
            place = further
        elif before in CONFIGFILE and not word.startswith("-"):
            files[-1] = word
        elif before in files and Path(word).suffix in YAML:
            files.append(word)
        elif word == "--":
            place = further
        else:
            place = others if word.startswith("-") else place
            place.append(word)
        before = word
    if "" in files:
        raise InputError(f"{CONFIGFILE[0]} has no file; expected the path of a config")
    return files, others, further
