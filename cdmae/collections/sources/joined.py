"""Join the passages of several collections: the text of one pre-training.

The id of a passage begins with the name of its collection. Queries and judgments are left out, so
that a training on the text sees no test query.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae import collections
from cdmae.collections import Source
from cdmae.collections.judged import batches
from cdmae.errors import InputError
from cdmae.fields import setting, settings

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Source):
    """Settings of a collection that joins the passages of others."""

    of: dict[str, Any] = setting(
        meaning="the collections to join, by name: for each, a `source` and its settings"
    )

    def __post_init__(self) -> None:
        """Convert the settings of the collections; refuse fewer than two of them."""
        if len(self.of) < 2:
            raise InputError(f"of has {len(self.of)} collections; allowed: two or more")
        typed = {}
        for name, values in self.of.items():
            if not isinstance(values, dict):
                raise InputError(
                    f"of.{name} is not a mapping; allowed: a `source` and its settings"
                )
            if values.get("source") == "joined":
                raise InputError(f"of.{name}.source is joined; allowed: another source")
            typed[name] = collections.typed(values, f"of.{name}")
        object.__setattr__(self, "of", typed)  # settings are frozen

    @property
    def bases(self) -> dict[str, Source]:
        """Return the settings of the collections by name."""
        return {name: collections.nested(own, f"of.{name}") for name, own in self.of.items()}

    def depends(self) -> list[Path]:
        """List the files of all collections, without duplicates."""
        files = [file for base in self.bases.values() for file in base.depends()]
        return list(dict.fromkeys(files))

    def folders(self) -> list[Path]:
        """Return the folders of all collections."""
        return [folder for base in self.bases.values() for folder in base.folders()]

    def version(self) -> dict[str, str]:
        """Return the versions of all collections."""
        versions: dict[str, str] = {}
        for base in self.bases.values():
            versions |= base.version()
        return versions

    def threads(self) -> int:
        """Return the most threads that one of the collections can use."""
        return max(base.threads() for base in self.bases.values())

    def downloads(self) -> dict[Path, float]:
        """Estimate the downloads of all collections."""
        files: dict[Path, float] = {}
        for base in self.bases.values():
            files |= base.downloads()
        return files

    def expected(self) -> tuple[int, float, dict[str, int]] | None:
        """Add up the passages and words; None if a collection does not know them."""
        passages = 0
        words = 0.0
        for base in self.bases.values():
            counts = base.expected()
            if counts is None:
                return None
            passages += counts[0]
            words += counts[0] * counts[1]
        return passages, words / max(1, passages), {}

    def check(self) -> dict[str, int]:
        """Check every collection; returns nothing, because there are no queries."""
        for base in self.bases.values():
            base.check()
        return {}

    def load(self, threads: int = 1) -> Collection:
        """Join the passages while they are written."""
        import pyarrow as pa

        from cdmae.collections.store import PASSAGES, Collection

        rows = batches(self._rows(threads), PASSAGES)
        passages = pa.RecordBatchReader.from_batches(PASSAGES, rows)
        return Collection(passages, {}, {}, {"source": "joined", "of": self.of})

    def _rows(self, threads: int) -> Iterator[tuple[str, str, str]]:
        for name, base in self.bases.items():
            for passage_id, title, text in base.load(threads).rows():
                yield f"{name}/{passage_id}", title, text
