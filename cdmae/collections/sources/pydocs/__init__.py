"""Make a collection for documentation search from installed Python packages, without any download.

The query is the first sentence of a docstring, the relevant passage is the rest of it, as in
CodeSearchNet (Husain et al. 2019) with prose instead of code. Passages have no title, because an
object's name would reveal the answer.

- `harvest`: find the docstrings of the standard library and installed packages without imports
- `paragraphs`: divide each docstring into sections and paragraphs
- `cleaning`: turn the paragraphs into a summary and a body of prose
- `division`: make passages, queries, judgments, and splits that share nothing

The same Python and the same packages give the same bytes; ``about`` records their versions and all
counts.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Le

from cdmae.collections import Counts, Judgments, Source
from cdmae.collections.sources.pydocs.harvest import DISTRIBUTIONS, STDLIB, root
from cdmae.errors import InputError
from cdmae.fields import Natural, Whole, settings

if TYPE_CHECKING:
    import pandas as pd

    from cdmae.collections.store import Collection

# Packages that the environment pins anyway, as import names; the standard library first.
IN_DOMAIN = (STDLIB, "numpy", "scipy", "pandas", "torch", "transformers", "matplotlib")
MORE = (
    "PIL", "fontTools", "fsspec", "huggingface_hub", "jinja2", "numba", "pyarrow",
    "sentence_transformers", "setuptools",
)  # fmt: skip
HELD_OUT = {
    "scikit-learn": "sklearn",
    "networkx": "networkx",
    "sympy": "sympy",
    "sqlalchemy": "sqlalchemy",
}
SMOKE = (
    "argparse", "asyncio", "builtins", "calendar", "codecs", "collections", "concurrent",
    "configparser", "datetime", "difflib", "email", "functools", "http", "ipaddress", "json",
    "logging", "math", "multiprocessing", "pathlib", "shutil", "socket", "statistics", "tarfile",
    "threading", "traceback", "typing", "unittest", "urllib", "zipfile",
)  # fmt: skip
WORDS = 55.0  # the average length of a passage
WHOLE = {  # size -> passages, then queries of train, dev and test
    "smoke": (1_107, 934, 83, 90),
    "default": (18_353, 15_388, 1_369, 1_357),
    "full": (25_000, 20_000, 1_900, 1_900),
}
PARTS = {  # held-out part -> passages, queries
    "scikit-learn": (1_646, 1_563), "networkx": (1_160, 1_149), "sympy": (3_158, 3_152),
    "sqlalchemy": (1_540, 1_479),
}  # fmt: skip
SMOKE_SHARE = 0.2  # of the modules of a held-out package, for size smoke


@settings
class Settings(Source):
    """The keys of a collection of docstrings."""

    queries_are_cut = True

    size: Literal["smoke", "default", "full"] = "default"
    """smoke: about 1,000 passages of the standard library; default: about 18,000, the packages that
    this environment pins; full: more packages.
    """
    part: Literal[("", *HELD_OUT)] = ""
    """A package that is held out for zero-shot evaluation; empty: all other packages."""
    max_words: Annotated[Whole, Ge(20), Le(10_000)] = 120
    """Longest passage (words)."""
    train_queries: Natural = 0
    """Number of training queries to keep, chosen by a stable hash; 0: all."""

    unlabelled: Natural = 0
    """Number of further training queries, in the split `unlabelled`, whose judgments are withheld:
    a teacher may label them (`labels` of a stage) [RocketQA: 1.7 million queries without
    judgments].
    """

    def __post_init__(self) -> None:
        """Refuse `train_queries` for a held-out part, which has no training queries.

        Refuse `unlabelled` without `train_queries`, with which all have judgments.
        """
        if self.unlabelled and not self.train_queries:
            raise InputError(
                f"unlabelled is {self.unlabelled}, but train_queries is 0, which keeps the "
                "judgments of all queries; allowed: unlabelled 0, or a number of train_queries"
            )
        if self.part and self.train_queries:
            raise InputError(
                f"train_queries is {self.train_queries}, but the held-out part {self.part} has "
                "no training queries; remove train_queries"
            )

    def packages(self) -> tuple[str, ...]:
        """Return the import names of the harvested packages."""
        if self.part:
            return (HELD_OUT[self.part],)
        return {"smoke": (STDLIB,), "default": IN_DOMAIN, "full": IN_DOMAIN + MORE}[self.size]

    def judged(self) -> dict[str, bool]:
        """Return the splits and whether they have judgments; a held-out part has test queries."""
        if self.part:
            return {"test": True}
        splits = {"train": True, "dev": True, "test": True}
        return splits | ({"unlabelled": False} if self.unlabelled else {})

    def version(self) -> dict[str, str]:
        """Return the versions of Python and the harvested packages.

        Raises `InputError` for a missing package.
        """
        versions = {STDLIB: platform.python_version()}
        for package in self.packages():
            if package == STDLIB:
                continue
            root(package)
            distribution = DISTRIBUTIONS.get(package, package)
            try:
                versions[package] = importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                versions[package] = "unknown"
        return versions

    def check(self) -> Counts:
        """Raise `InputError` if a package of the collection is not installed.

        All judgments have the grade 1. The number of training queries is known if the settings
        limit it, since all of them have a relevant passage.
        """
        self.version()
        queries = {"train": self.train_queries or None}
        judged = [split for split, has in self.judged().items() if has]
        return Counts(splits={split: Judgments(queries.get(split), 1) for split in judged})

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Return counts measured in one environment; counts in other environments are similar."""
        share = SMOKE_SHARE if self.size == "smoke" else 1.0
        if self.part:
            passages, queries = PARTS[self.part]
            return round(share * passages), WORDS, {"test": round(share * queries)}
        passages, train, dev, test = WHOLE[self.size]
        train = min(train, self.train_queries or train)
        further = {"unlabelled": self.unlabelled} if self.unlabelled else {}
        return passages, WORDS, {"train": train, "dev": dev, "test": test} | further

    def threads(self) -> int:
        """Return the number of useful processes."""
        return 1 if self.part or self.size == "smoke" else 4

    def load(self, threads: int = 1) -> Collection:
        """Harvest, clean and divide: 40 cpu-s and 0.3 GB for `default`, 60 cpu-s for `full`."""
        import numpy as np
        import pyarrow as pa

        from cdmae.collections.sources.pydocs import division
        from cdmae.collections.store import PASSAGES, Collection

        documented: dict[str, int] = {}
        passages, asked, counts = division.divide(
            self._entries(documented, threads), held_out=bool(self.part)
        )
        if passages.empty:
            raise InputError(
                f"the packages {', '.join(self.packages())} hold no documentation; allowed: "
                "installed sources"
            )
        queries = {}
        qrels = {}
        query_counts = {}
        for split, has_judgments in self.judged().items():
            every = asked[asked["split"] == ("train" if split == "unlabelled" else split)]
            kept = self._kept(every, split)
            queries[split] = kept[["query_id", "text"]].reset_index(drop=True)
            query_counts[split] = {"read": len(every)}
            if has_judgments:
                judgments = kept[["query_id", "passage_id"]].explode("passage_id")
                qrels[split] = judgments.assign(grade=np.int16(1))
                query_counts[split] |= {"judged": len(kept), "judgments": len(judgments)}
        about: dict[str, Any] = {
            "source": "pydocs",
            "versions": self.version(),
            "documented objects": documented,
            "passages": len(passages),
            "queries": query_counts,
            **counts,
        }
        table = pa.table(
            [passages["passage_id"], [""] * len(passages), passages["text"]], schema=PASSAGES
        )
        return Collection(table, queries, qrels, about)

    def _kept(self, queries: pd.DataFrame, split: str) -> pd.DataFrame:
        """Choose the queries of a split; those without judgments follow the training queries."""
        if split == "train" and self.train_queries:
            return _ordered(queries, "train_queries", 0, self.train_queries)
        if split == "unlabelled":
            return _ordered(queries, "unlabelled", self.train_queries, self.unlabelled)
        return queries

    def _entries(self, counts: dict[str, int], threads: int) -> Iterator[tuple[str, str, str]]:
        """Yield the (name, summary, body) of objects with both; count all documented objects.

        counts: receives the number of documented objects of each package.
        """
        from cdmae.collections.sources.pydocs import cleaning, harvest
        from cdmae.log import Progress

        is_smoke = self.size == "smoke"
        packages = self.packages()
        progress = Progress(len(packages), unit="packages", label="harvest")
        with harvest.processes(threads) as over, progress:
            for package in packages:
                within = SMOKE if is_smoke and package == STDLIB else ()
                share = SMOKE_SHARE if is_smoke and package != STDLIB else 1.0
                counts[package] = 0
                for found in harvest.harvest(package, within, share, over):
                    counts[package] += 1
                    cleaned = cleaning.clean(found.docstring, found.name, self.max_words)
                    if cleaned:
                        yield found.name, *cleaned
                progress.advance()


def _ordered(queries: pd.DataFrame, key: str, first: int, number: int) -> pd.DataFrame:
    """Return `number` queries from `first` on by a hash of their names, in their original order.

    Smaller sets are therefore subsets of larger ones. key: the setting with the number.
    """
    if first + number > len(queries):
        raise InputError(
            f"{key} is {number}; allowed: 0{'' if first else ' (all)'} to {len(queries) - first}, "
            f"the number of {'other ' if first else ''}training queries"
        )
    names = queries["query_id"].str.removeprefix("query:")
    order = names.map(lambda name: hashlib.sha256(f"training query {name}".encode()).hexdigest())
    return queries.loc[order.sort_values().index[first : first + number]].sort_index()
