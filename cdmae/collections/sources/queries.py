"""Ask further queries of another collection: queries and judgments are new, the passages are not.

The passages, and the word-pieces, indexes and vectors of the other collection, are shared. The
folder has BEIR's layout without a corpus, as ``./run serve --judge`` writes it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cdmae.collections import Source, judged
from cdmae.collections.folders import check_folder
from cdmae.collections.judged import Parts, Rows
from cdmae.collections.sources.beir import queries_and_qrels
from cdmae.errors import InputError
from cdmae.fields import Of, settings

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Source):
    """Settings of further queries."""

    of: Annotated[str, Of("collections")]
    """The entry of `collections` whose passages are judged."""
    path: str
    """Folder with queries.jsonl and qrels/{split}.tsv; a relative path begins at the working
    directory.
    """

    @property
    def shared(self) -> str:  # type: ignore[override]
        """Return the name of the other collection."""
        return self.of

    def parts(self) -> tuple[dict[str, Rows], dict[str, Rows]]:
        """Find the queries and the judgments by split; raises `InputError` without queries."""
        queries, qrels = queries_and_qrels(check_folder(self.path))
        if not queries:
            raise InputError(f"path is {self.path}, which holds no queries.jsonl; add queries")
        return queries, qrels

    def judged(self) -> dict[str, bool]:
        """Return, for each split, whether it has judgments."""
        queries, qrels = self.parts()
        return {split: split in qrels for split in queries}

    def depends(self) -> list[Path]:
        """List the files of queries and judgments, without duplicates."""
        found = self.parts()
        every = [rows for by_split in found for rows in by_split.values()]
        return list(dict.fromkeys(file for rows in every for file in rows.files))

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the queries; the passages are the other collection's."""
        queries, _ = self.parts()
        return 0, 0.0, {split: rows.size()[0] for split, rows in queries.items()}

    def load(self, threads: int = 1) -> Collection:
        """Read the queries; `of` is the folder of the other collection, as its job wrote it."""
        from cdmae.collections.store import read_passages

        folder = Path(self.of)
        queries, qrels = self.parts()
        table = read_passages(folder)
        parts = Parts(Rows([folder / "passages.parquet"], iter), queries, qrels)
        about = {"source": "queries", "passages": len(table)}
        found = judged.asked(parts, table, table["passage_id"].to_pandas(), about)
        return replace(found, shared=folder)
