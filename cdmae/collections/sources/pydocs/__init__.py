"""Make a collection for documentation search from installed Python packages, without any download.

The query is the first sentence of a docstring, the relevant passage is the rest of it, as in
CodeSearchNet (Husain et al. 2019) with prose instead of code. Passages have no title, because an
object's name would reveal the answer.

- `harvest`: find the docstrings of installed packages without imports
- `prose`: turn a docstring into a summary and a body of prose
- `division`: make passages, queries, judgments, and splits that share nothing

The environment pins the packages, so every Python gives the same collection; ``about`` records
their versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cdmae.collections import Source, pinned
from cdmae.collections.leakage import stable_share
from cdmae.collections.sources.pydocs import harvest
from cdmae.errors import InputError
from cdmae.fields import Natural, settings

if TYPE_CHECKING:
    import pandas as pd

    from cdmae.collections.store import Collection

# Packages that the environment pins anyway, as import names.
IN_DOMAIN = ("numpy", "scipy", "pandas", "torch", "transformers", "matplotlib")
MORE = (
    "fsspec", "huggingface_hub", "jinja2", "numba", "pyarrow", "sentence_transformers",
    "setuptools",
)  # fmt: skip
HELD_OUT = {
    "scikit-learn": "sklearn",
    "networkx": "networkx",
    "sympy": "sympy",
    "sqlalchemy": "sqlalchemy",
}
SMOKE = ("pandas", "scipy")
SMOKE_SHARE = 0.2  # of the modules of a package, for size smoke
WORDS = 55.0  # the average length of a passage
MOST_WORDS = 120  # the longest passage
WHOLE = {  # size -> passages, then queries of train, dev and test
    "smoke": (1_066, 929, 74, 70),
    "default": (16_371, 13_531, 1_201, 1_177),
    "full": (25_000, 20_000, 1_900, 1_900),
}
PARTS = {  # held-out part -> passages, queries
    "scikit-learn": (1_644, 1_555), "networkx": (1_179, 1_162), "sympy": (3_180, 3_178),
    "sqlalchemy": (1_700, 1_677),
}  # fmt: skip


@settings
class Settings(Source):
    """Docstrings of Python packages."""

    queries_are_cut = True

    size: Literal["smoke", "default", "full"] = "default"
    """smoke: about 1,000 passages of two packages; default: about 16,000 of the pinned packages;
    full: of more packages.
    """
    part: Literal[("", *HELD_OUT)] = ""
    """A package that is held out for zero-shot evaluation; empty: all others."""
    train_queries: Natural = 0
    """Number of training queries; 0: all."""
    unlabelled: Natural = 0
    """Number of further queries in the split `unlabelled`, for `labels` of a stage [RocketQA]."""

    def __post_init__(self) -> None:
        """Refuse `unlabelled` without `train_queries`, with which all have judgments."""
        if self.unlabelled and not self.train_queries:
            raise InputError(
                f"unlabelled is {self.unlabelled}, but train_queries is 0, which keeps the "
                "judgments of all queries; expected unlabelled 0, or a number of train_queries"
            )

    def packages(self) -> tuple[str, ...]:
        """Return the import names of the harvested packages."""
        if self.part:
            return (HELD_OUT[self.part],)
        return {"smoke": SMOKE, "default": IN_DOMAIN, "full": IN_DOMAIN + MORE}[self.size]

    def own_splits(self) -> dict[str, bool]:
        """Return the splits and whether they have judgments; a held-out part has test queries."""
        if self.part:
            return {"test": True}
        splits = {"train": True, "dev": True, "test": True}
        return splits | ({"unlabelled": False} if self.unlabelled else {})

    def version(self) -> dict[str, str]:
        """Return the versions of the harvested packages."""
        return {name: pinned(self.part or name) for name in self.packages()}

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Return the counts of the pinned packages."""
        if self.part:
            share = SMOKE_SHARE if self.size == "smoke" else 1.0
            passages, queries = PARTS[self.part]
            return round(share * passages), WORDS, {"test": round(share * queries)}
        passages, train, dev, test = WHOLE[self.size]
        train = min(train, self.train_queries or train)
        further = {"unlabelled": self.unlabelled} if self.unlabelled else {}
        return passages, WORDS, {"train": train, "dev": dev, "test": test} | further

    def threads(self) -> int:
        """Return the number of useful processes."""
        return 1 if self.part or self.size == "smoke" else 4

    def read(self, threads: int) -> Collection:
        """Harvest, clean and divide: a minute of one core and 0.3 GB for `default`."""
        import numpy as np
        import pyarrow as pa

        from cdmae.collections.sources.pydocs import division
        from cdmae.collections.store import PASSAGES, Collection

        passages, asked = division.divide(self._entries(threads), held_out=bool(self.part))
        queries = {}
        qrels = {}
        for split, has_judgments in self.own_splits().items():
            every = asked[asked["split"] == ("train" if split == "unlabelled" else split)]
            kept = self._kept(every, split)
            queries[split] = kept[["query_id", "text"]].reset_index(drop=True)
            if has_judgments:
                judgments = kept[["query_id", "passage_id"]].explode("passage_id")
                qrels[split] = judgments.assign(grade=np.int16(1))
        columns = [passages["passage_id"], [""] * len(passages), passages["text"]]
        about = {"source": "pydocs", "versions": self.version()}
        return Collection(pa.table(columns, schema=PASSAGES), queries, qrels, about)

    def _kept(self, queries: pd.DataFrame, split: str) -> pd.DataFrame:
        """Choose the queries of a split by a hash of their names, so that fewer are a subset.

        Queries without judgments follow the training queries.
        """
        chosen = {"train": (0, self.train_queries), "unlabelled": (self.train_queries, None)}
        first, number = chosen.get(split, (0, 0))
        number = self.unlabelled if number is None else number
        if not number:
            return queries
        if first + number > len(queries):
            key = "unlabelled" if first else "train_queries"
            raise InputError(f"{key} is {number}; expected 0 to {len(queries) - first}")
        names = queries["query_id"].str.removeprefix("query:")
        order = names.map(lambda name: stable_share(f"training query {name}"))
        return queries.loc[order.sort_values().index[first : first + number]].sort_index()

    def _entries(self, threads: int) -> Iterator[tuple[str, str, str]]:
        """Yield the (name, summary, body) of objects with both."""
        from joblib import Parallel, delayed

        share = SMOKE_SHARE if self.size == "smoke" else 1.0
        modules = [found for name in self.packages() for found in harvest.modules(name, share)]
        read = delayed(_entries_in)
        found = Parallel(threads, return_as="generator")(
            read(*each, MOST_WORDS) for each in modules
        )
        seen: set[str] = set()
        for name, entry in chain.from_iterable(found):
            if name not in seen:
                seen.add(name)
                if entry:
                    yield name, *entry


def _entries_in(
    module: str, path: Path, max_words: int
) -> list[tuple[str, tuple[str, str] | None]]:
    """List the documented objects of a module, with summary and body if they have both."""
    from cdmae.collections.sources.pydocs.prose import prose

    return [
        (name, prose(text, name, max_words)) for name, text in harvest.documented_in(module, path)
    ]
