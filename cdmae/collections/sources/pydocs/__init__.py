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
from itertools import chain, starmap
from typing import TYPE_CHECKING, Literal

from cdmae.collections import Source, pinned
from cdmae.collections.leakage import stable_share
from cdmae.collections.sources.pydocs import harvest
from cdmae.collections.sources.pydocs.prose import prose
from cdmae.errors import InputError
from cdmae.fields import Natural, settings, unfit

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

    size: Literal["smoke", "default", "full"] = "default"
    """Passages: smoke about 1,000; default 16,000; full 25,000, of more packages."""
    part: Literal[("", *HELD_OUT)] = ""
    """A package for zero-shot evaluation; empty: the others."""
    train_queries: Natural = 0
    """Training queries; 0: all."""
    unlabelled: Natural = 0
    """Queries in the split `unlabelled`, for a stage's `labels`."""

    def __post_init__(self) -> None:
        """Refuse `unlabelled` without `train_queries`, with which all have judgments."""
        if self.unlabelled and not self.train_queries:
            words = ", but train_queries is 0, which keeps the judgments of all queries"
            raise unfit(self, "unlabelled", f"{words}; expected 0, or a number of train_queries")

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
            passages, queries = PARTS[self.part]
            return passages, WORDS, {"test": queries}
        passages, train, dev, test = WHOLE[self.size]
        train = min(train, self.train_queries or train)
        queries = {"train": train, "dev": dev, "test": test, "unlabelled": self.unlabelled}
        return passages, WORDS, queries

    def read(self) -> Collection:
        """Harvest, clean and divide: a minute of one core and 0.3 GB for `default`."""
        import numpy as np

        from cdmae.collections import judged
        from cdmae.collections.sources.pydocs import division
        from cdmae.collections.store import table_of

        passages, asked = division.divide(self._entries(), held_out=bool(self.part))
        asked = self._chosen(asked).assign(grade=np.int16(1))
        about = {"source": "pydocs", "versions": self.version()}
        table = table_of((name, "", text) for name, text in passages.to_numpy())
        return judged.collected(table, asked, self.own_splits(), about)

    def _chosen(self, asked: pd.DataFrame) -> pd.DataFrame:
        """Choose the training queries by a hash of their names, so that fewer are a subset.

        Queries without judgments follow them; further ones are left out.
        """
        import pandas as pd

        if not self.train_queries:
            return asked
        names = asked.loc[asked["split"] == "train", "query_id"].drop_duplicates()
        shares = names.map(lambda name: stable_share(f"training query {name[len('query:') :]}"))
        last = self.train_queries + self.unlabelled
        if last > len(names):
            raise InputError(
                f"train_queries is {self.train_queries}, and unlabelled is {self.unlabelled}; "
                f"expected at most {len(names)} together"
            )
        order = names[shares.sort_values().index]
        position = asked["query_id"].map(pd.Series(range(len(order)), index=order))
        split = asked["split"].mask(position >= self.train_queries, "unlabelled")
        return asked.assign(split=split.mask(position >= last, ""))

    def _entries(self) -> Iterator[tuple[str, str, str]]:
        """Yield the (name, summary, body) of objects with both."""
        share = SMOKE_SHARE if self.size == "smoke" else 1.0
        modules = [found for name in self.packages() for found in harvest.modules(name, share)]
        seen: set[str] = set()
        for name, text in chain.from_iterable(starmap(harvest.documented_in, modules)):
            if name not in seen:
                seen.add(name)
                entry = prose(text, name, MOST_WORDS)
                if entry:
                    yield name, *entry
