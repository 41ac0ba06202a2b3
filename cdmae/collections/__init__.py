"""Define the interface of a collection source; each module in `sources` implements one source.

Each module has a class ``Settings``, a subclass of `Source`. Its fields (`cdmae.fields`) are the
keys of the config, and the workflow calls its methods. All of them except ``read`` and ``load``
need only the standard library and pydantic, because they are called whenever the workflow starts.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from cdmae.collections import leakage
from cdmae.collections.leakage import Holdout, HoldoutSeed
from cdmae.errors import InputError
from cdmae.fields import EMPTY, asdict, parse, settings, unfit

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

# settings that choose among the queries; the passages do not depend on them
CHOICES = ("holdout", "holdout_seed", "train_queries", "unlabelled")


@settings
class Source:
    """Hold a source's settings, and define the methods that the workflow calls, with defaults.

    shared: the entry of `collections` whose passages are this collection's; empty for own ones.
    writer: the sequence-to-sequence model by which another job writes the texts that `load` reads
    from the file `texts`; empty without such a job.
    """

    shared = ""
    writer = ""

    holdout: Holdout = EMPTY
    holdout_seed: HoldoutSeed = 0

    def own_splits(self) -> dict[str, bool]:
        """Return, for each split of the data, whether it has judgments, without reading them."""
        return {}

    def judged(self) -> dict[str, bool]:
        """Return, for each split of the collection, whether it has judgments."""
        return leakage.splits_after(self.own_splits(), self.holdout)

    def depends(self) -> list[Path]:
        """List the files from which the collection is made, without duplicates.

        The collection is made again when one of them changes.
        """
        return []

    def version(self) -> dict[str, str]:
        """Return other inputs that affect the result, such as versions of harvested packages."""
        return {}

    def modules(self) -> list[str]:
        """List the modules of the sources from which the collection is made."""
        return []

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the passages, the words per passage, and the queries by split of the data."""
        raise NotImplementedError

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Estimate as `estimate` does, with the queries in each split of the collection."""
        passages, words, queries = self.estimate()
        return passages, words, leakage.queries_after(queries, self.holdout)

    def read(self) -> Collection:
        """Read or make the data; ``about`` counts the rows that were read and dropped.

        The result does not depend on the config's `seed`.
        """
        raise NotImplementedError

    def load(self) -> Collection:
        """Read or make the collection, with the splits that are held out."""
        self.judged()  # checks `holdout`
        return leakage.hold_out(self.read(), self.holdout, self.holdout_seed)


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """Validate the settings of a nested collection; leave out defaults.

    Raises `InputError` if a job would have to write its texts first.
    """
    made = settings_of(values)
    if made.writer:
        words = ", but only an entry of `collections` can have its texts written"
        raise unfit(made, "model", f"{words}; expected `texts`, a file")
    known = asdict(made) | {"source": str(values["source"])}
    return {name: known[name] for name in values if name != "language"}


# the settings of another collection: a `source` and its settings
Nested = Annotated[dict[str, Any], AfterValidator(nested)]


class Derived(Source):
    """A source that makes its collection from others, whose settings are in `of`."""

    of: dict[str, Any]

    @property
    def bases(self) -> list[Source]:
        """Return the settings of the other collections."""
        return [settings_of(self.of)]

    @property
    def base(self) -> Source:
        """Return the settings of the other collection."""
        return self.bases[0]

    def own_splits(self) -> dict[str, bool]:
        """Return the splits of the other collection."""
        return self.base.judged()

    def depends(self) -> list[Path]:
        """List the files of the other collections, without duplicates."""
        return list(dict.fromkeys(file for base in self.bases for file in base.depends()))

    def version(self) -> dict[str, str]:
        """Return the versions of the other collections."""
        found = {}
        for base in self.bases:
            found |= base.version()
        return found

    def modules(self) -> list[str]:
        """List the modules of the other collections' sources."""
        return [name for base in self.bases for name in (type(base).__module__, *base.modules())]


def pinned(package: str) -> str:
    """Return the locked version of a package, also in an environment that lacks it."""
    folder = Path(__file__).parents[2] / "envs/lock"
    locked = "".join((folder / f"{name}.txt").read_text() for name in ("run", "torch"))
    found = re.search(rf"^{package.replace('_', '-')}==(\S+)", locked, re.MULTILINE)
    return found[1] if found else ""


def readable() -> bool:
    """Return whether this environment has the packages that read collections.

    An environment with only Snakemake lacks them. In that case the jobs check the data, because
    they run in a different environment.
    """
    return all(find_spec(package) for package in ("pandas", "pyarrow"))


def names() -> list[str]:
    """List the names of the sources: the modules and packages in the folder `sources`."""
    folder = Path(__file__).with_name("sources")
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]))


def source(name: str) -> ModuleType:
    """Return the module of a source; raises `InputError` for an unknown name."""
    if name not in names():
        raise InputError(f"{name} is not a source of collections; expected {', '.join(names())}")
    return importlib.import_module(f"cdmae.collections.sources.{name}")


def settings_of(values: Mapping[str, Any], *keys: str) -> Source:
    """Make the source that the settings `values` at `keys` of the config name."""
    own = dict(values)
    own.pop("language", "")  # which no source reads
    module = source(str(own.pop("source", "")))
    return parse(module.Settings, own, *keys)


def relevant_queries(collection: Collection) -> dict[str, int]:
    """Count the queries of each judged split that have a relevant passage: a grade of 1 or more."""
    counts = {}
    for split, rows in collection.qrels.items():
        is_relevant = rows["passage_id"].notna() & (rows["grade"] > 0)
        counts[split] = int(rows.loc[is_relevant, "query_id"].nunique())
    return counts
