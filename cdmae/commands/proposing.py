"""The command that writes a config for a folder of data."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import yaml
from typer import Argument, Option

from cdmae.commands.configs import ROOT
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.files import read_json, write_text

CONFIG = "my.yaml"  # the default name of a new config
MOST_LETTERS = 30  # of a name in the results folder's: letters of up to 4 bytes, 255 in all
ENOUGH = 200  # real questions of which most train; fewer only measure


def new(
    folder: Annotated[str, Argument(metavar="FOLDER", help="a folder of data, or a table")],
    to: Annotated[str, Option(help="the config to write")] = CONFIG,
    questions: Annotated[
        str,
        Option(
            help="a table of real questions about documents: question, and the file, the heading "
            "or the id of a passage that answers it"
        ),
    ] = "",
    encoder: Annotated[
        str,
        Option(
            help="a published encoder: a folder, or a name at the hub; none: random weights. "
            "Default: a small retriever, if the hub answers within 4 seconds"
        ),
    ] = "",
    source: Annotated[
        Literal["beir", "msmarco", "pairs", "text"] | None,
        Option(help="the layout, if the folder fits several"),
    ] = None,
    query: Annotated[
        str, Option(help="the column with the queries of pairs, if its name is unusual")
    ] = "",
    positive: Annotated[
        str, Option(help="the column with the relevant passages of pairs, likewise")
    ] = "",
    force: Annotated[bool, Option("--force", help="overwrite the config")] = False,
) -> None:
    """Write a config for your own data, and print its plan and the next command.

    FOLDER has the layout of BEIR or MS MARCO, or contains tables of pairs (JSONL, CSV, TSV,
    Parquet) or documents (.txt, .md, .rst, .html). It may also be a single table. If the plan
    fails, no config is written. The results folder is named after FOLDER and --to.
    """
    from cdmae.collections.folders import table_at
    from cdmae.plan import machine, plan
    from cdmae.proposal import encoders, recipe, survey

    given = Path(os.path.expanduser(folder))
    # in the hub's cache, a table is a link to a file without a suffix
    path = given.parent.resolve() / given.name if given.is_file() else given.resolve()
    to = os.path.expanduser(to)  # the shell leaves --to=~/my.yaml to the command
    kind = survey.source_of(path, source or ("text" if questions else ""))
    target = new_file(to, force)
    settings = survey.settings_of(kind, path, query, positive)
    if questions:
        if kind != "text":
            raise InputError(f"--questions is for documents, but {folder} is read as {kind}")
        asked = str(table_at(questions, "--questions").resolve())
        settings["questions"] = {"test": asked}
    found = survey.survey(kind, path, settings)
    if questions and found.judged["test"] >= ENOUGH:
        settings["questions"] = {"train": asked}
        found = replace(found, settings=settings, judged={"train": found.judged["test"]})
    here = machine.here()
    print("\n".join(recipe.description(found)))
    name = results_name(path, target)
    check_results(name, path)
    published = encoders.published(encoder, found.language)
    pieces = survey.pieces(found, published.folder if published else None, recipe.VOCABULARY)
    values, reasons = recipe.choose(found, here, published, name, pieces)
    for reason in reasons:
        print(f"recipe   {reason}")
    again = " exists; a run makes again what differs" if (ROOT / "results" / name).exists() else ""
    print(f"results  results/{name}{again}\n")
    text = recipe.text(values, ROOT)
    with chdir(ROOT):  # where the paths of the config begin
        print(plan.text(plan.Plan(load(yaml.safe_load(text))), here))
    write_text(target, text)
    print(f"\nwrote    {to}")
    print(f"next: ./run --configfile {shlex.quote(to)}")


def results_name(path: Path, target: Path) -> str:
    """Name the results after the data, and after a config without the default name."""
    name = path.name.partition(".")[0] if path.is_file() else path.name
    if target.name != CONFIG:
        name = f"{name[:MOST_LETTERS]}-{target.stem}"
    return re.sub(r"[^\w-]+", "-", name[: 2 * MOST_LETTERS]).strip("-") or "mine"


def check_results(name: str, path: Path) -> None:
    """Raise `InputError` if a finished run's results of this name are not of the data at `path`."""
    record = ROOT / "results" / name / "facts.json"
    if record.exists():
        mine = read_json(record)["config"]["collections"].get("mine", {})
        data = ROOT / mine.get("path", "")
        if path not in (data, *data.parents):  # the data may be one of the folder's tables
            raise InputError(
                f"results/{name} has the results of {data}, not of {path}; --to names another "
                "config, and its results after it"
            )


def new_file(to: str, force: bool) -> Path:
    """Return the path of a config to write; refuse all existing files but a config with `force`."""
    target = Path(to).resolve()
    is_config = target.is_file() and target.suffix in (".yaml", ".yml")
    if target.exists() and not (force and is_config):
        raise InputError(f"{to} exists; --force overwrites a config, --to names another file")
    return target
