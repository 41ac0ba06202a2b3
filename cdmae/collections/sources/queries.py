"""Ask further queries of another collection: queries and judgments are new, the passages are not.

The passages, and the word-pieces, indexes and vectors of the other collection, are shared. The
folder has BEIR's layout without a corpus, as ``./run serve --judge`` writes it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cdmae.collections import judged
from cdmae.collections.folders import Folder, check_folder
from cdmae.collections.judged import Parts, Rows
from cdmae.collections.sources.beir import queries_and_qrels
from cdmae.errors import InputError
from cdmae.fields import Of, settings

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Folder):
    """Queries and judgments for another collection's passages."""

    of: Annotated[str, Of("collections")]
    """Entry of `collections` with the passages."""
    path: str
    """Folder with queries.jsonl and qrels/{split}.tsv."""

    @property
    def shared(self) -> str:  # type: ignore[override]
        """Return the name of the other collection."""
        return self.of

    def parts(self) -> Parts:
        """Find the queries and the judgments; the passages are the other collection's."""
        queries, qrels = queries_and_qrels(check_folder(self.path))
        if not queries:
            raise InputError(f"path is {self.path}, which holds no queries.jsonl; add queries")
        return Parts(Rows([], iter), queries, qrels)

    def read(self) -> Collection:
        """Read the queries; `of` is the folder of the other collection, as its job wrote it."""
        from cdmae.collections.store import read_passages

        folder = Path(self.of)
        table = read_passages(folder)
        passages = Rows([folder / "passages.parquet"], iter)
        parts = replace(self.parts(), passages=passages)
        found = judged.asked(parts, table, {"source": "queries"})
        return replace(found, shared=folder)
