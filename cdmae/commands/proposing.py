"""The command that writes a config for a folder of data."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import yaml
from typer import Argument, Option

from cdmae.commands.configs import ROOT
from cdmae.config import pretrained
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.files import write_text
from cdmae.formats import memory, plural

if TYPE_CHECKING:
    from cdmae.proposal.encoders import Encoder
    from cdmae.proposal.survey import Survey

CONFIG = "my.yaml"  # the default name of a new config
MOST_LETTERS = 60  # of a file's name in the results folder's: letters of up to 4 bytes, 255 in all
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
    head: Annotated[
        Literal["dense", "sparse"] | None,
        Option(help="for an encoder whose files do not say that it is a SPLADE"),
    ] = None,
    source: Annotated[
        Literal["beir", "msmarco", "pairs", "text"] | None,
        Option(help="for a folder that could be several"),
    ] = None,
    query: Annotated[
        str, Option(help="the column of the queries of pairs, if its name is not a usual one")
    ] = "",
    positive: Annotated[
        str, Option(help="the column of the relevant passages of pairs, likewise")
    ] = "",
    train: Annotated[
        bool, Option(help="train the encoder; --no-train: only measure it, on judged queries")
    ] = True,
    force: Annotated[bool, Option("--force", help="overwrite the config")] = False,
) -> None:
    """Write a config for your own data, and print its plan and the next command.

    FOLDER is in BEIR's layout or MS MARCO's, holds tables of pairs (JSONL, CSV, TSV, Parquet), or
    holds documents (.txt, .md, .rst, .html). It may also be a single table. If the plan fails, no
    config is written. Its results folder is named after FOLDER and --to.
    """
    from cdmae.plan import machine, plan
    from cdmae.proposal import encoders, recipe, survey

    if head and encoder in ("", "none"):
        raise InputError(f"--head is {head}, but --encoder names no model; add --encoder MODEL")
    given = Path(os.path.expanduser(folder))
    # in the hub's cache, a table is a link to a file without a suffix
    path = given.parent.resolve() / given.name if given.is_file() else given.resolve()
    to = os.path.expanduser(to)  # the shell leaves --to=~/my.yaml to the command
    target = new_file(to, force)
    kind = survey.source_of(path, source or ("text" if questions else ""))
    settings = survey.settings_of(kind, path, query, positive)
    if questions:
        if kind != "text":
            raise InputError(f"--questions is for documents, but {folder} is read as {kind}")
        asked = str(Path(os.path.expanduser(questions)).resolve())
        settings["questions"] = {"test": asked}
    found = survey.survey(kind, path, settings)
    if questions and found.judged["test"] >= ENOUGH:
        settings["questions"] = {"train": asked}
        found = replace(found, settings=settings, judged={"train": found.judged["test"]})
    published = encoders.published(encoder, head, found.language)
    check_training(train, found, published)
    here = machine.here()
    print("\n".join(recipe.description(found)))
    gpus = f", {plural(here.gpus, 'GPU')} ({here.gpu})" if here.gpus else ", no GPU"
    print(f"machine  {plural(here.cores, 'core')}{gpus}, {memory((here.memory or 0) / 1e6)}")
    name = results_name(path, target)
    pieces: tuple[int, ...] = ()
    if train:
        folder = published.folder if published else None
        pieces = survey.pieces(found, folder, recipe.VOCABULARY)
    chosen = recipe.choose(found, here, published, name, pieces)
    for reason in chosen.reasons:
        print(f"recipe   {reason}")
    print(f"results  results/{name}\n")
    text = recipe.text(chosen, ROOT)
    with chdir(ROOT):  # where the paths of the config begin
        print(plan.text(plan.Plan(load(yaml.safe_load(text))), here))
    write_text(target, text)
    print(f"\nwrote    {to}")
    print(f"next: ./run --configfile {shlex.quote(to)}")


def check_training(train: bool, found: Survey, encoder: Encoder | None) -> None:
    """Refuse a training that loses a part of the encoder, and a measurement without queries."""
    if train and encoder and encoder.lost:
        raise InputError(
            f"--encoder: training does not keep a part of {encoder.model}: {encoder.lost}; "
            f"expected pooling cls or mean, and one of {', '.join(pretrained.FAMILIES)}; "
            "--no-train measures the model as it is"
        )
    if not train and not (encoder and encoder.retriever):
        raise InputError("--no-train measures a published retriever: name it with --encoder")
    if not train and not any(found.judged.values()):
        raise InputError("--no-train needs judged queries, but the data have none")


def results_name(path: Path, target: Path) -> str:
    """Name the results after the data, and after a config without the default name."""
    names = [path.name.partition(".")[0] if path.is_file() else path.name]
    if target.name != CONFIG:
        names.append(target.stem)
    name = "-".join(each[:MOST_LETTERS] for each in dict.fromkeys(names))
    return re.sub(r"[^\w-]+", "-", name).strip("-") or "mine"


def new_file(to: str, force: bool) -> Path:
    """Return the path of a config to write; refuse a folder, other files, and an existing one."""
    target = Path(to).resolve()
    if not to or to.endswith("/") or (target.exists() and not target.is_file()):
        what = f"{to}, which is not a file" if to else "empty"
        raise InputError(f"--to is {what}; expected a name for the new config file")
    if target.exists() and target.suffix not in (".yaml", ".yml"):
        raise InputError(f"--to is {to}, which is no config; expected a name that ends in .yaml")
    if target.exists() and not force:
        raise InputError(f"{to} exists; --force overwrites it, --to names another file")
    return target
