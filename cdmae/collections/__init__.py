"""Define the interface of a collection source; each module in `sources` implements one source.

Each module has a class ``Settings``, a subclass of `Source`. Its fields (`cdmae.fields`) are the
keys of the config, and the workflow calls its methods. All of them except ``load`` and ``check``
need only the standard library and pydantic, because they are called whenever the workflow starts.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from cdmae.errors import InputError
from cdmae.fields import asdict, parse, show

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


# row numbers are int32; the row after the last passage represents missing judged passages
MOST_PASSAGES = 2**31 - 1


class Judgments(NamedTuple):
    """Describe the judgments of a split; None: unknown until the collection is made.

    queries: the number of queries with a relevant passage, as training needs them. highest: the
    highest grade.
    """

    queries: int | None
    highest: int | None


@dataclass(frozen=True)
class Counts:
    """Count the passages of a collection, and describe its judged splits.

    What is unknown until the collection is made is None or missing.
    """

    passages: int | None = None
    splits: dict[str, Judgments] = field(default_factory=dict)


class Source:
    """Hold a source's settings, and define the methods that the workflow calls, with defaults.

    queries_are_cut: whether each query is a sentence that was cut from its relevant passages.
    shared: the entry of `collections` whose passages are this collection's; empty for own ones.
    writer, keywords_of: how another job writes the texts that `load` reads from the file `texts`:
    a sequence-to-sequence model, or an estimate of importance, which chooses keywords (entries of
    `importance`, `starts` and `collections`); empty without such a job. of_a_writer: the settings
    that only this job reads.
    """

    queries_are_cut = False
    shared = ""
    writer = ""
    keywords_of = ()
    of_a_writer = frozenset[str]()

    def judged(self) -> dict[str, bool]:
        """Return, for each split, whether it has judgments, without reading the data."""
        return {}

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

    def threads(self) -> int:
        """Return the number of threads that `load` can use."""
        return 1

    def expected(self) -> tuple[int, float, dict[str, int]] | None:
        """Estimate the number of passages, the words per passage, and the queries in each split.

        Nothing is read for the estimate. Returns None if the numbers are not known.
        """
        return None

    def load(self, threads: int = 1) -> Collection:
        """Read or make the collection; ``about`` counts the rows that were read and dropped.

        The result depends neither on the number of threads nor on the config's `seed`.
        """
        raise NotImplementedError


class Derived(Source):
    """A source that makes its collection from others, whose settings are in `of`."""

    of: dict[str, Any]

    def __post_init__(self) -> None:
        """Convert the settings of the other collection; refuse a source within itself."""
        own = type(self).__module__.rpartition(".")[2]
        if self.of.get("source") == own:
            raise InputError(f"of.source is {own}; expected another source")
        object.__setattr__(self, "of", typed(self.of, "of"))  # settings are frozen

    @property
    def bases(self) -> list[Source]:
        """Return the settings of the other collections."""
        return [nested(self.of, "of")]

    @property
    def base(self) -> Source:
        """Return the settings of the other collection."""
        return self.bases[0]

    @property
    def queries_are_cut(self) -> bool:  # type: ignore[override]
        """Return whether each query of the other collection is cut from its relevant passages."""
        return self.base.queries_are_cut

    def judged(self) -> dict[str, bool]:
        """Return the splits of the other collection."""
        return self.base.judged()

    def depends(self) -> list[Path]:
        """List the files of the other collections, without duplicates."""
        return list(dict.fromkeys(file for base in self.bases for file in base.depends()))

    def version(self) -> dict[str, str]:
        """Return the versions of the other collections."""
        return dict(ChainMap(*(base.version() for base in self.bases)))

    def modules(self) -> list[str]:
        """List the modules of the other collections' sources."""
        return [name for base in self.bases for name in (type(base).__module__, *base.modules())]

    def threads(self) -> int:
        """Return the number of threads that reading the other collections can use."""
        return max(base.threads() for base in self.bases)


def check_rows(rows: int, what: str) -> None:
    """Raise `InputError` if there are more passages or queries than int32 row numbers."""
    if rows > MOST_PASSAGES:
        raise InputError(
            f"there are more than {MOST_PASSAGES:,} {what} (at least {rows:,}), which cannot be "
            "numbered; divide the collection into several"
        )


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


def settings_of(values: Mapping[str, Any], key: str) -> Source:
    """Make the source that the settings `values` at `key` of the config name."""
    own = dict(values)
    own.pop("language", "")  # which no source reads
    module = source(str(own.pop("source", "")))
    return parse(module.Settings, own, key)


def nested(values: Mapping[str, Any], key: str) -> Source:
    """Make the source that the settings `values` name, nested under `key` of another source.

    Raises `InputError` if a job would have to write its texts first.
    """
    made = settings_of(values, key)
    for name, value in (("model", made.writer), ("keywords_of", made.keywords_of)):
        if value:
            raise InputError(
                f"{key}.{name} is {show(value)}, but only an entry of `collections` can have its "
                f"texts written; expected {key}.texts, a file"
            )
    return made


def typed(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return nested settings with the types of their source, without the source's defaults."""
    known = asdict(nested(values, key)) | {"source": str(values["source"])}
    return {name: known[name] for name in values if name != "language"}


def counts(collection: Collection) -> Counts:
    """Count what a collection holds. A passage is relevant if its grade is 1 or more."""
    splits = {}
    for split, rows in collection.qrels.items():
        is_relevant = rows["passage_id"].notna() & (rows["grade"] > 0)
        queries = int(rows.loc[is_relevant, "query_id"].nunique())
        # a published split may lose all of its judgments, since some are dropped
        splits[split] = Judgments(queries, int(rows["grade"].max()) if len(rows) else None)
    return Counts(len(collection.passages), splits)


def check_needed(needed: Mapping[str, Any], collection: str, counts: Counts) -> None:
    """Raise `InputError` if a setting needs more than a collection has.

    needed: for each setting, such as ``stages.stage1.queries``, its quantity (`queries`, `passages`
    or `grade`), its split and its value (`cdmae.config.systems.needed`). Quantities that `counts`
    lacks are not checked.
    """
    where = f"collections.{collection}"
    for key, (quantity, split, number) in needed.items():
        judged = counts.splits.get(split, Judgments(None, None))
        most, words = {
            "passages": (counts.passages, f"the passages of {where}"),
            "grade": (judged.highest, f"the highest grade of {where}, split {split}"),
            "queries": (
                judged.queries,
                f"the queries of {where}, split {split}, that have a relevant passage",
            ),
        }[quantity]
        if most is not None and number > most:
            words = f"{key} is {number}; expected up to {most}, {words}"
            raise InputError(words, keys=tuple(key.split(".")))
