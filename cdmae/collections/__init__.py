"""Sources of collections: one module per source; the config names a source by its file's name.

Each module has settings (`cdmae.fields`), the class ``Settings``, a `Source`: its fields are the
keys of the config, its methods answer the workflow's questions. All methods but ``load`` and
``check`` need only the standard library and pydantic, because every start of the workflow calls
them.
"""

from __future__ import annotations

import importlib
import pkgutil
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cdmae.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from cdmae.collections.store import Collection


# rows are int32; the row after the last one represents judged passages that are missing
MOST_PASSAGES = 2**31 - 1


class Source:
    """Settings of a source, and the methods that the workflow calls; each has a default."""

    def judged(self) -> dict[str, bool]:
        """Return split -> whether it has judgments, without reading the data."""
        return {}

    def depends(self) -> list[Path]:
        """List the files from which the collection is made, each once.

        The collection is made again when one of them changes.
        """
        return []

    def folders(self) -> list[Path]:
        """List the folders of which every file may become part of the collection.

        The results must not be inside them.
        """
        return []

    def version(self) -> dict[str, str]:
        """Return other inputs that decide the result, such as versions of harvested packages."""
        return {}

    def threads(self) -> int:
        """Return the number of threads that `load` can use."""
        return 1

    def expected(self) -> tuple[int, float, dict[str, int]] | None:
        """Estimate the passages, words per passage, and queries by split, before anything is read.

        None if they are not known.
        """
        return None

    def downloads(self) -> dict[Path, float]:
        """Estimate the bytes that `load` fetches and keeps, by file, except for existing files."""
        return {}

    def check(self) -> dict[str, int]:
        """Read everything and return the counts of `relevant`.

        Raises `InputError` with file and line for the first error.
        """
        return relevant(self.load().qrels)

    def load(self, threads: int = 1) -> Collection:
        """Read or make the collection, with its counts and drops in ``about``.

        The result is the same with any number of threads, and nothing is random: data do not change
        with `seed`.
        """
        raise NotImplementedError


def check_rows(rows: int, what: str) -> None:
    """Raise `InputError` for more passages or queries than int32 row numbers."""
    if rows > MOST_PASSAGES:
        raise InputError(
            f"there are more than {MOST_PASSAGES:,} {what} (at least {rows:,}), which cannot be "
            "numbered; divide the "
            "collection into several"
        )


def readable() -> bool:
    """Return whether this environment has the packages that read collections.

    An environment with Snakemake alone has not: the jobs, which run in another one, check the data.
    """
    return all(find_spec(package) for package in ("pandas", "pyarrow"))


def names() -> list[str]:
    """List the names of the sources: the modules and packages in the folder `sources`."""
    return sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).with_name("sources"))])
    )


def source(name: str) -> ModuleType:
    """Return the module of a source; raises `InputError` for an unknown name."""
    if name not in names():
        raise InputError(f"{name} is not a source of collections; allowed: {', '.join(names())}")
    return importlib.import_module(f"cdmae.collections.sources.{name}")


def relevant(qrels: dict[str, pd.DataFrame]) -> dict[str, int]:
    """Count the queries of each judged split that have a relevant passage, as training needs.

    A passage is relevant if its grade is 1 or more. qrels: split -> frame (query_id, passage_id,
    grade), without an id if the passage is not in the collection.
    """
    there = {split: rows.dropna(subset="passage_id") for split, rows in qrels.items()}
    return {
        split: int(rows.loc[rows["grade"] > 0, "query_id"].nunique())
        for split, rows in there.items()
    }


def check_batch(
    stage: str, queries: int, collection: str, split: str, relevant: dict[str, int]
) -> None:
    """Refuse a stage (``stages.x``) whose batch is larger than its split.

    relevant: the counts of the function `relevant`.
    """
    most = relevant.get(split, queries)
    if queries > most:
        raise InputError(
            f"{stage}.queries is {queries}; allowed: up to {most}, the queries of "
            f"collections.{collection}, split "
            f"{split}, that have a relevant passage",
            keys=(*stage.split("."), "queries"),
        )
