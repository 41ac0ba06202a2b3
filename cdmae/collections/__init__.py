"""Sources of collections: one module per source; the config uses the name of its file.

Each module has a class ``Settings``, a subclass of `Source`. Its fields (`cdmae.fields`) are the
keys of the config, and the workflow calls its methods. All of them except ``load`` and ``check``
need only the standard library and pydantic, because they are called whenever the workflow starts.
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


# row numbers are int32; the row after the last passage represents missing judged passages
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
        """List the folders that are read as a whole: any file in them may join the collection.

        The results must not be inside them.
        """
        return []

    def version(self) -> dict[str, str]:
        """Return other inputs that affect the result, such as versions of harvested packages."""
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
    """Raise `InputError` for more passages or queries than int32 row numbers allow."""
    if rows > MOST_PASSAGES:
        raise InputError(
            f"there are more than {MOST_PASSAGES:,} {what} (at least {rows:,}), which cannot be "
            "numbered; divide the collection into several"
        )


def readable() -> bool:
    """Return whether this environment has the packages that read collections.

    An environment that has only Snakemake lacks them; the jobs, which run in another environment,
    then check the data.
    """
    return all(find_spec(package) for package in ("pandas", "pyarrow"))


def names() -> list[str]:
    """List the names of the sources: the modules and packages in the folder `sources`."""
    folder = Path(__file__).with_name("sources")
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]))


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
    counts = {}
    for split, rows in qrels.items():
        is_relevant = rows["passage_id"].notna() & (rows["grade"] > 0)
        counts[split] = int(rows.loc[is_relevant, "query_id"].nunique())
    return counts


def check_batch(
    stage: str, queries: int, collection: str, split: str, relevant: dict[str, int]
) -> None:
    """Raise `InputError` if a stage (``stages.x``) takes more queries per step than its split has.

    relevant: the counts that the function `relevant` returns.
    """
    most = relevant.get(split, queries)
    if queries > most:
        raise InputError(
            f"{stage}.queries is {queries}; allowed: up to {most}, the queries of "
            f"collections.{collection}, split {split}, that have a relevant passage",
            keys=(*stage.split("."), "queries"),
        )
