"""Join the passages of several collections: the text of one pre-training, or of one retriever.

The id of a passage begins with the name of its collection. Queries and judgments are left out, so
that a training on the text sees no test query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from annotated_types import MinLen

from cdmae.collections import Derived, Nested, Source, settings_of
from cdmae.fields import settings

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Derived):
    """The passages of several collections."""

    of: Annotated[dict[str, Nested], MinLen(2)]
    """Collections by name, as in `collections`."""

    @property
    def bases(self) -> list[Source]:  # type: ignore[override]
        """Return the settings of the collections, in the order of their names in `of`."""
        return [settings_of(own) for own in self.of.values()]

    def own_splits(self) -> dict[str, bool]:
        """Return no splits."""
        return {}

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Add up passages and words."""
        every = [base.expected() for base in self.bases]
        passages = sum(counts[0] for counts in every)
        words = sum(counts[0] * counts[1] for counts in every)
        return passages, words / max(1, passages), {}

    def read(self) -> Collection:
        """Join the passages."""
        from cdmae.collections.store import Collection, table_of

        table = table_of(self._rows())
        return Collection(table, {}, {}, {"source": "joined", "of": self.of})

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for name, base in zip(self.of, self.bases, strict=True):
            for passage_id, title, text in base.load().rows():
                yield f"{name}/{passage_id}", title, text
