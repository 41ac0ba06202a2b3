"""Ask for the passages of another collection by some of their own words.

5 to 16 consecutive words of a passage are a query for it (the inverse cloze task, Lee et al. 2019),
and the passage keeps them: a cross-encoder learns from such queries to compare words before it
learns from real ones. A retriever learns only to match words. The queries are for training alone,
because BM25 finds their passages. Passages, word-pieces, indexes and vectors are the other
collection's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cdmae.collections import Source
from cdmae.collections.sources.pseudo import divided, hashed
from cdmae.errors import InputError
from cdmae.fields import Name, Of, Positive, settings

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Source):
    """Spans of another collection's passages as queries."""

    of: Annotated[Name, Of("collections")]
    """Entry of `collections` with the passages."""
    queries: Positive = 10_000
    """Training queries, at most one per passage."""

    @property
    def shared(self) -> str:  # type: ignore[override]
        """Return the name of the other collection."""
        return self.of

    def own_splits(self) -> dict[str, bool]:
        """Return ``train``, which has judgments."""
        return {"train": True}

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Return the number of queries; the passages are the other collection's."""
        return 0, 0.0, {"train": self.queries}

    def read(self) -> Collection:
        """Make the queries; `of` is the folder of the other collection, as its job wrote it.

        Raises `InputError` if too few passages are long enough.
        """
        import pandas as pd

        from cdmae.collections import judged
        from cdmae.collections.store import Collection, read_passages

        folder = Path(self.of)
        table = read_passages(folder)
        asked = []
        for name, title, text in Collection(table, {}, {}, {}).rows():
            parts = divided(name, title, text, "span")
            if parts:
                order = hashed(f"order {name}")
                asked.append(("train", f"span-{name}", parts[0], name, 1, order))
        frame = pd.DataFrame(asked, columns=[*judged.JUDGED, "order"]).drop_duplicates("text")
        if len(frame) < self.queries:
            raise InputError(
                f"queries is {self.queries:,}, but only {len(frame):,} passages have a span of "
                f"words; expected at most {len(frame):,}"
            )
        frame = frame.sort_values("order", kind="stable").head(self.queries).sort_index()
        made = judged.collected(table, frame, self.own_splits(), {"source": "spans"})
        return replace(made, shared=folder)
