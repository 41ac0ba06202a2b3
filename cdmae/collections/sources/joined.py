"""Join the passages of several collections: the text of one pre-training, or of one retriever.

The id of a passage begins with the name of its collection. Queries and judgments are left out, so
that a training on the text sees no test query, except for the splits in `splits`: the training
queries of several collections, whose negatives come from all of their passages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cdmae import collections
from cdmae.collections import Counts, Derived, Source
from cdmae.collections.judged import batches
from cdmae.errors import InputError
from cdmae.fields import settings

if TYPE_CHECKING:
    import pandas as pd

    from cdmae.collections.store import Collection


@settings
class Settings(Derived):
    """Settings of a collection that joins the passages of others."""

    of: dict[str, Any]
    """The collections to join, by name: for each, a `source` and its settings."""

    splits: tuple[str, ...] = ()
    """The splits whose queries and judgments are joined, too, such as [train]; collections may lack
    a split.
    """

    def __post_init__(self) -> None:
        """Convert the settings of the collections; refuse fewer than two of them."""
        if len(self.of) < 2:
            raise InputError(f"of has {len(self.of)} collections; expected two or more")
        typed = {}
        for name, values in self.of.items():
            if not isinstance(values, dict):
                raise InputError(
                    f"of.{name} is not a mapping; expected a `source` and its settings"
                )
            if values.get("source") == "joined":
                raise InputError(f"of.{name}.source is joined; expected another source")
            typed[name] = collections.typed(values, f"of.{name}")
        object.__setattr__(self, "of", typed)  # settings are frozen

    @property
    def bases(self) -> list[Source]:  # type: ignore[override]
        """Return the settings of the collections, in the order of their names in `of`."""
        return [collections.nested(own, f"of.{name}") for name, own in self.of.items()]

    queries_are_cut = False

    def judged(self) -> dict[str, bool]:
        """Return the splits that are joined; raise `InputError` if one is nowhere judged."""
        known = {name: base.judged() for name, base in zip(self.of, self.bases, strict=True)}
        for split in self.splits:
            found = {name: splits[split] for name, splits in known.items() if split in splits}
            unjudged = [name for name, has_judgments in found.items() if not has_judgments]
            if unjudged or not found:
                where = f"in {unjudged[0]}" if unjudged else "anywhere"
                raise InputError(
                    f"splits has {split}, which has no judgments {where}; expected splits with "
                    "judgments"
                )
        return dict.fromkeys(self.splits, True)

    def expected(self) -> tuple[int, float, dict[str, int]] | None:
        """Add up passages, words and queries; None if a collection does not know them."""
        passages = 0
        words = 0.0
        queries = dict.fromkeys(self.splits, 0)
        for base in self.bases:
            counts = base.expected()
            if counts is None:
                return None
            passages += counts[0]
            words += counts[0] * counts[1]
            for split in self.splits:
                queries[split] += counts[2].get(split, 0)
        return passages, words / max(1, passages), queries

    def check(self) -> Counts:
        """Check every collection; add up the passages if all are known."""
        passages = [base.check().passages for base in self.bases]
        known = [number for number in passages if number is not None]
        return Counts(sum(known) if len(known) == len(passages) else None)

    def load(self, threads: int = 1) -> Collection:
        """Join the passages while they are written."""
        import pandas as pd
        import pyarrow as pa

        from cdmae.collections.store import PASSAGES, Collection

        self.judged()  # checks `splits`
        parts = {name: base.load(threads) for name, base in zip(self.of, self.bases, strict=True)}
        queries = {}
        qrels = {}
        for split in self.splits:
            having = [(name, part) for name, part in parts.items() if split in part.qrels]
            asked = [_prefixed(part.queries[split], name) for name, part in having]
            judged = [_prefixed(part.qrels[split], name) for name, part in having]
            queries[split] = pd.concat(asked, ignore_index=True)
            qrels[split] = pd.concat(judged, ignore_index=True)
        passages = pa.RecordBatchReader.from_batches(PASSAGES, batches(_rows(parts), PASSAGES))
        return Collection(passages, queries, qrels, {"source": "joined", "of": self.of})


def _rows(parts: dict[str, Collection]) -> Iterator[tuple[str, str, str]]:
    for name, part in parts.items():
        for passage_id, title, text in part.rows():
            yield f"{name}/{passage_id}", title, text


def _prefixed(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Prefix the ids of queries and passages by the name of their collection."""
    ids = {key: name + "/" + rows[key] for key in ("query_id", "passage_id") if key in rows}
    return rows.assign(**ids)
