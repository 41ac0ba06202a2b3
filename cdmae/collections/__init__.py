"""Where collections come from: one module per source, named in the config by its file's name.

Each has settings (`cdmae.fields`), the class ``Settings``, a `Source`: its fields are the keys of
the config, and it answers what the workflow asks. All but ``load`` and ``check`` need only the
standard library and pydantic, since every start of the workflow asks.
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

    from cdmae.collections.store import Collection


MOST_PASSAGES = (
    2**31 - 1
)  # rows are int32; the row behind the last stands for judged passages that are missing


class Source:
    """What the settings of a source answer; those that have nothing to say leave the answer out."""

    def judged(self) -> dict[str, bool]:
        """Return split -> whether it has judgments, without reading the data."""
        return {}

    def depends(self) -> list[Path]:
        """List the files from which the collection is made, each once; it is made again when one
        changes.
        """
        return []

    def folders(self) -> list[Path]:
        """List the folders of which every file may become part of the collection; results may not
        lie there.
        """
        return []

    def version(self) -> dict[str, str]:
        """Return what else decides the result, such as the versions of harvested packages."""
        return {}

    def threads(self) -> int:
        """Return how many threads help `load`."""
        return 1

    def expected(self) -> tuple[int, float, dict[str, int]] | None:
        """Estimate passages, words in one, and queries by split, as far as they are known before
        anything is read.
        """
        return None

    def downloads(self) -> dict[Path, float]:
        """Estimate how many bytes `load` fetches and keeps, by file, but for those that are there."""
        return {}

    def check(self) -> dict[str, int]:
        """Read everything; raises `InputError`, with file and line, for what is wrong. Returns what
        `relevant` does.
        """
        return relevant(self.load().qrels)

    def load(self, threads: int = 1) -> Collection:
        """Read or make the collection, with what was counted and dropped in its ``about``.

        It is the same whatever the number of threads, and nothing is drawn at random: data stay as
        they are when `seed` changes.
        """
        raise NotImplementedError


def check_rows(rows: int, what: str) -> None:
    """Refuse more rows of passages or queries than there are numbers for them."""
    if rows > MOST_PASSAGES:
        raise InputError(
            f"there are more than {MOST_PASSAGES:,} {what} (at least {rows:,}), which cannot be "
            "numbered; divide the "
            "collection into several"
        )


def names() -> list[str]:
    """List the names of the sources: the modules and packages in the folder `sources`."""
    return sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).with_name("sources"))])
    )


def source(name: str) -> ModuleType:
    """Return the module of a source; raises `InputError` for a name that is none."""
    if name not in names():
        raise InputError(f"{name} is not a source of collections; allowed: {', '.join(names())}")
    return importlib.import_module(f"cdmae.collections.sources.{name}")


def relevant(qrels: dict[str, pd.DataFrame]) -> dict[str, int]:
    """Count the queries of each judged split that have a relevant passage, one of grade 1 or more:
    training needs it.

    qrels: split -> frame (query_id, passage_id, grade), without an id of a passage that is not
    there.
    """
    there = {split: rows.dropna(subset="passage_id") for split, rows in qrels.items()}
    return {
        split: int(rows.loc[rows["grade"] > 0, "query_id"].nunique())
        for split, rows in there.items()
    }


def check_batch(
    stage: str, queries: int, collection: str, split: str, relevant: dict[str, int]
) -> None:
    """Refuse a stage (``stages.x``) whose batch is larger than its split; `relevant`: see
    `relevant`.
    """
    most = relevant.get(split, queries)
    if queries > most:
        raise InputError(
            f"{stage}.queries is {queries}; allowed: up to {most}, the queries of "
            f"collections.{collection}, split "
            f"{split}, that have a relevant passage",
            keys=(*stage.split("."), "queries"),
        )
