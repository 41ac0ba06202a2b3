"""The config that a command uses, and the names and results that its options refer to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import suggestion

ROOT = Path(__file__).resolve().parents[2]
ConfigFiles = Annotated[
    list[str],
    typer.Option(
        "--configfile",
        metavar="FILE...",
        help="config files as for a run, which overlay config/config.yaml",
    ),
]


def configured(overlays: Sequence[str], overrides: dict[str, Any] | None = None) -> Config:
    """Load the default config, overlay configs and `overrides` on it; change to the checkout.

    Paths in the config are relative to the checkout.

    Raises `InputError` for an invalid config.
    """
    overlays = [str(Path(file).resolve()) for file in overlays]
    os.chdir(ROOT)
    return load(gather(ROOT / "config/config.yaml", overlays, overrides))


def chosen(what: str, name: str | None, allowed: list[str], default: list[str]) -> str:
    """Check a name from the command line; without a name, return the default."""
    if name is None and default:
        return default[0]
    if name not in allowed:
        raise InputError(f"--{what} is {name or 'missing'}; {suggestion(name or '', allowed)}")
    return name


def chosen_collection(config: Config, name: str | None) -> str:
    """Return a collection of the evaluation, by default the first without judgments.

    Users ask their own queries about collections without judgments. If there are none, the default
    is the first that is not `pseudo`, whose passages lack the words of their queries.
    """
    known = list(config.evaluation.collections)
    unjudged = [other for other, splits in config.evaluation.collections.items() if not splits]
    whole = [other for other in known if config.collections[other].source != "pseudo"]
    return chosen("collection", name, known, unjudged or whole or known)


def existing(path: str, *, kept: bool = False) -> str:
    """Check that a result exists; `kept`: whether `evaluation.keep_vectors` decides that."""
    if not Path(path).exists():
        when = " if the collection is evaluated, keep_vectors is true and the seed is the first one"
        raise InputError(
            f"{path} does not exist yet; ./run with the same config files makes it{when * kept}"
        )
    return path
