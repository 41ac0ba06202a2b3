"""The command that writes a config for a folder of data."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from cdmae.commands.configs import ROOT
from cdmae.commands.planning import plan
from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import write_text
from cdmae.formats import memory, plural
from cdmae.log import say

if TYPE_CHECKING:
    from cdmae.proposal.hub import Encoder

CONFIG = "my.yaml"  # the default name of a new config
MOST_LETTERS = 60  # of a file's name in the results folder's: letters of up to 4 bytes, 255 in all


def new(
    folder: Annotated[str, Argument(metavar="FOLDER", help="a folder of data, or a table")],
    to: Annotated[str, Option(help="the config to write")] = CONFIG,
    encoder: Annotated[
        str,
        Option(
            help="a published encoder: a folder, or a name at the hub; none: random weights. "
            "Default: a small retriever, if the hub answers within 4 seconds"
        ),
    ] = "",
    head: Annotated[
        str,
        Option(help="dense or sparse, if an encoder's files do not say that it is a SPLADE"),
    ] = "",
    source: Annotated[
        str, Option(help="beir, msmarco, pairs or text, for a folder that could be several")
    ] = "",
    query: Annotated[
        str, Option(help="the column of the queries of pairs, if its name is not a usual one")
    ] = "",
    positive: Annotated[
        str, Option(help="the column of the relevant passages of pairs, likewise")
    ] = "",
    force: Annotated[bool, Option("--force", help="overwrite the config")] = False,
) -> None:
    """Write a config for your own data, and print its plan and the next command.

    FOLDER is in BEIR's layout or MS MARCO's, holds tables of pairs (JSONL, CSV, TSV, Parquet), or
    holds texts (.txt, .md, .rst). It may also be a single table. If the plan fails, no config is
    written. Its results folder is named after FOLDER and --to, and does not exist yet.
    """
    from cdmae.plan import machine
    from cdmae.proposal import recipe, survey

    if not folder:
        raise InputError("the name of the folder is empty; allowed: ./run new data/mine")
    if head not in ("", "dense", "sparse"):
        raise InputError(f"--head is {head}; allowed: dense, sparse")
    if head and encoder in ("", "none"):
        raise InputError(f"--head is {head}, but --encoder names no model; add --encoder MODEL")
    given = Path(os.path.expanduser(folder))
    # in the hub's cache, a table is a link to a file without a suffix
    path = given.parent.resolve() / given.name if given.is_file() else given.resolve()
    to = os.path.expanduser(to)  # the shell leaves --to=~/my.yaml to the command
    target = new_file(to, force, path)
    sources = survey.check(path, source)
    kind = sources[0]
    if len(sources) > 1:
        kind = asked("source", f"{folder} could be {' or '.join(sources)}", sources)
    settings = survey.settings_of(kind, path, query, positive)
    columns = {}
    if kind == "pairs":
        unclear, columns = survey.unclear_columns(settings)
        for what, names in unclear.items():
            settings[what] = asked(what, f"which column of {folder} has the {what}?", names)
            columns[what] = settings[what]
    found = survey.survey(kind, path, settings, columns)
    published = published_encoder(encoder, head, found.scripts)
    here = machine.here()
    print("\n".join(recipe.description(found)))
    gpus = f", {plural(here.gpus, 'GPU')} ({here.gpu})" if here.gpus else ", no GPU"
    print(f"machine  {plural(here.cores, 'core')}{gpus}, {memory((here.memory or 0) / 1e6)}")
    data = Path(path.name.removesuffix(".gz")).stem if path.is_file() else path.name
    parts = [data[:MOST_LETTERS]]
    if target.name != CONFIG:
        parts.append(target.stem[:MOST_LETTERS])
    base = re.sub(r"[^\w-]+", "-", "-".join(parts)).strip("-") or "mine"
    # the results of another config are kept; a config that is overwritten keeps its folder
    previous = target.read_text(encoding="utf-8", errors="replace") if target.exists() else ""
    name = next(
        each
        for each in chain([base], (f"{base}-{number}" for number in count(2)))
        if f"results: results/{each}\n" in previous or not (ROOT / "results" / each).exists()
    )
    chosen = recipe.choose(found, here, published, name)
    for reason in chosen.reasons:
        print(f"recipe   {reason}")
    print(f"results  results/{name}\n")
    text = recipe.text(chosen, ROOT)
    with tempfile.TemporaryDirectory() as aside:
        trial = Path(aside, target.name)
        write_text(trial, text)
        try:
            plan(configfile=[str(trial)])
        except InputError as error:
            # the user has no file in which to look up the line
            place = rf"{re.escape(str(trial))}(, line \d+)?: "
            raise InputError(re.sub(place, "", str(error))) from None
    write_text(target, text)
    print(f"\nwrote    {to}")
    print(f"next: ./run --configfile {shlex.quote(to)}")


def asked(option: str, question: str, choices: list[str]) -> str:
    """Ask a question; without a terminal, raise `InputError` with the option to use instead."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError(f"{question}. Name it with --{option}; allowed: {', '.join(choices)}")
    listed = ", ".join(f"{number} {choice}" for number, choice in enumerate(choices, 1))
    while True:
        try:
            answer = input(f"{question} ({listed}) ").strip()
        except EOFError:
            raise InputError(f"no answer; name it with --{option}") from None
        if answer in choices:
            return answer
        if answer.isdecimal() and 1 <= int(answer) <= len(choices):
            return choices[int(answer) - 1]


def new_file(to: str, force: bool, data: Path | None = None) -> Path:
    """Return the path of a config to write; refuse a folder, the data, and an existing file."""
    given = Path(to)
    target = given.resolve()
    if not to or to.endswith("/") or (target.exists() and not target.is_file()):
        what = f"{to}, which is not a file" if to else "empty"
        raise InputError(f"--to is {what}; allowed: a name for the new config file")
    places = (given.parent.resolve() / given.name, target)  # a file of the data may be a link
    of_the_data = data is not None and any(place.is_relative_to(data) for place in places)
    if of_the_data and target.exists() and target.suffix not in (".yaml", ".yml"):
        raise InputError(f"--to is {to}, which holds data; allowed: a name for the new config file")
    if target.exists() and not force:
        raise InputError(f"{to} exists; --force overwrites it, --to names another file")
    return target


def published_encoder(model: str, head: str, scripts: Mapping[str, float]) -> Encoder | None:
    """Return the encoder of `--encoder`, or the hub's default; None for random weights.

    head: of `--head`; empty for the one that the model's files name.
    scripts: the shares of the scripts of the texts, which decide the default.
    """
    from cdmae.proposal import hub

    if model == "none":
        return None
    if model:
        folder = Path(os.path.expanduser(model))
        if folder.is_dir():
            return hub.local(str(folder.resolve()), head)
        # as in a config, a name in an existing folder is a path
        is_below = folder.parent != Path() and folder.parent.is_dir()
        if is_below or folder.exists() or not pretrained.HUB_NAME.fullmatch(model):
            state = "is a file" if folder.exists() else "does not exist"
            raise InputError(
                f"--encoder is {show(model)}, but {show(str(folder.absolute()))} {state}; allowed: "
                f"the folder of a model, or a name at the hub such as {hub.LATIN}"
            )
        return hub.at_hub(model, head)
    say(f"asking the hub for a published encoder, up to {hub.WAIT} seconds")
    if hub.answers():
        return hub.at_hub(hub.suited(scripts))
    say(
        "the hub does not answer: initial weights will be random; "
        "to begin with a published model, give --encoder FOLDER"
    )
    return None
