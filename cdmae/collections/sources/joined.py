"""Join the passages of several collections: the text of one pre-training, or of one retriever.

The id of a passage begins with the name of its collection. Queries and judgments are left out, so
that a training on the text sees no test query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cdmae import collections
from cdmae.collections import Derived, Source
from cdmae.errors import InputError
from cdmae.fields import settings

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Derived):
    """The passages of several collections."""

    queries_are_cut = False

    of: dict[str, Any]
    """The collections by name, each with a `source` and its settings."""

    def __post_init__(self) -> None:
        """Convert the settings of the collections; refuse fewer than two of them."""
        if len(self.of) < 2:
            raise InputError(f"of has {len(self.of)} collections; expected two or more")
        typed = {}
        for name, values in self.of.items():
            if not isinstance(values, dict) or values.get("source") == "joined":
                words = "expected a mapping of another source and its settings"
                raise InputError(f"of.{name} is {values}; {words}")
            typed[name] = collections.typed(values, f"of.{name}")
        object.__setattr__(self, "of", typed)  # settings are frozen

    @property
    def bases(self) -> list[Source]:  # type: ignore[override]
        """Return the settings of the collections, in the order of their names in `of`."""
        return [collections.nested(own, f"of.{name}") for name, own in self.of.items()]

    def own_splits(self) -> dict[str, bool]:
        """Return no splits."""
        return {}

    def estimate(self) -> tuple[int, float, dict[str, int]] | None:
        """Add up passages and words; None if a collection does not know them."""
        every = [base.expected() for base in self.bases]
        if None in every:
            return None
        passages = sum(counts[0] for counts in every)
        words = sum(counts[0] * counts[1] for counts in every)
        return passages, words / max(1, passages), {}

    def read(self, threads: int) -> Collection:
        """Join the passages."""
        from cdmae.collections.store import Collection, table_of

        table = table_of(self._rows(threads))
        return Collection(table, {}, {}, {"source": "joined", "of": self.of})

    def _rows(self, threads: int) -> Iterator[tuple[str, str, str]]:
        for name, base in zip(self.of, self.bases, strict=True):
            for passage_id, title, text in base.load(threads).rows():
                yield f"{name}/{passage_id}", title, text
