"""Where collections come from: one module per source, named in the config by its file's name.

A source offers

- ``Settings``: a frozen dataclass, the keys that a collection of this source takes in the config;
- ``splits(settings)``: split -> whether it has judgments, without reading the data;
- ``depends(settings)``: the input files, and ``version(settings)``: what else decides the result, such as the versions
  of harvested packages; when either changes, the collection is made again;
- ``check(settings, name)``: read everything and raise an `InputError` with file and line for what is wrong; returns, as
  `relevant` does, what it then knows;
- ``load(settings, threads)``: the `cdmae.collections.store.Collection`, with what was counted and dropped in its
  ``about``; the same whatever the number of threads. Nothing is drawn at random: data stay as they are when `seed`
  changes.

It may offer ``triples(settings)``, the names of published training triples, with ``triples_file(settings, name)``;
``expected(settings)``: the number of passages, the words in one, and the queries by split, as far as they
are known before anything is read, and ``downloads(settings)``, file to bytes of what ``load`` fetches and keeps;
`cdmae.plan` asks for them; and ``threads(settings)``, how many help ``load``.

All but ``load`` and ``check`` need only the standard library, since every start of the workflow calls them.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cdmae.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def names() -> list[str]:
    """List the names of the sources: the modules and packages in the folder `sources`."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).with_name("sources"))]))


def source(name: str) -> ModuleType:
    """Return the module of a source; raises `InputError` for a name that is none."""
    if name not in names():
        raise InputError(f"{name} is not a source of collections; allowed: {', '.join(names())}")
    return importlib.import_module(f"cdmae.collections.sources.{name}")


def relevant(qrels: dict[str, pd.DataFrame]) -> dict[str, int]:
    """Count the queries of each judged split that have a relevant passage, one of grade 1 or more: training needs it.

    qrels: split -> frame (query_id, passage_id, grade), without an id of a passage that is not there.
    """
    there = {split: rows.dropna(subset="passage_id") for split, rows in qrels.items()}
    return {split: int(rows.loc[rows["grade"] > 0, "query_id"].nunique()) for split, rows in there.items()}


def check_batch(stage: str, queries: int, collection: str, split: str, relevant: dict[str, int]) -> None:
    """Refuse a stage (``stages.x``) whose batch is larger than its split; `relevant`: see `relevant`."""
    most = relevant.get(split, queries)
    if queries > most:
        raise InputError(
            f"{stage}.queries is {queries}; allowed: up to {most}, the queries of collections.{collection}, split "
            f"{split}, that have a relevant passage",
            keys=(*stage.split("."), "queries"),
        )
