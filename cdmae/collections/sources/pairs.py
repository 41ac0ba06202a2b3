"""Read pairs of a query and its passages, in the columns of four libraries.

`path` is a table in JSONL, JSON, CSV, TSV or Parquet, which is the split ``train``, or a folder
with one table per split: ``train.csv``, ``dev.csv``, ..., or several as at the Hugging Face hub,
``train-00000-of-00002.parquet``. `cdmae.collections.pair_rows` describes the columns of
sentence-transformers, Tevatron, FlagEmbedding and DPR. All but Parquet may be compressed.

The passages are all texts of the tables, negatives included, and the passages of the table
`corpus`. Equal texts are one passage, and equal queries of a split are one query with several
positives. Ids are the table's, or else hashes of the text. A system of kind ``run`` reads negatives
and scores from the same table.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.collections import judged, pair_rows, tables
from cdmae.collections.folders import Folder, by_split, check_folder, table_at
from cdmae.collections.judged import Rows
from cdmae.collections.leakage import DIVIDED, Holdout, HoldoutSeed, expected_after
from cdmae.collections.pair_rows import Pair, Passage
from cdmae.collections.tables import SUFFIXES
from cdmae.errors import InputError
from cdmae.fields import EMPTY, settings, show

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Folder):
    """Settings of a collection of pairs."""

    path: str
    """Table of pairs (.jsonl, .csv, .tsv, .parquet), or folder with one table per split; a relative
    path begins at the working directory.
    """
    query: str = ""
    """Column of the queries; empty: anchor, query or question, whichever exists."""
    positive: str = ""
    """Column of the relevant passages; empty: positive, pos, positive_passages or answer, whichever
    exists.
    """
    corpus: str = ""
    """Table of further passages, with a column text, perhaps title, and perhaps _id, id, docid,
    passage_id or url, such as DPR's psgs_w100.tsv.
    """
    titles: bool = True
    """Whether titles are part of the passages."""
    holdout: Holdout = EMPTY
    holdout_seed: HoldoutSeed = 0

    def parts(self) -> judged.Parts:
        """Find the tables; raises `InputError` for missing tables."""
        found = self._tables()
        corpus = [table_at(self.corpus, "corpus")] if self.corpus else []
        read = _Reader(corpus, self.query, self.positive, self.titles)
        every = [*corpus, *(table for own in found.values() for table in own)]
        return judged.Parts(
            Rows(every, read.passages),
            {split: Rows(own, read.queries) for split, own in found.items()},
            {split: Rows(own, partial(read.judgments, every)) for split, own in found.items()},
        )

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the passages and the words per passage; count the queries of each split."""
        parts = self.parts()
        queries = {split: sum(1 for _ in rows.rows()) for split, rows in parts.queries.items()}
        return *parts.passages.size(), expected_after(queries, self.holdout)

    def load(self, threads: int = 1) -> Collection:
        """Read the collection, and record the columns that the settings name."""
        collection = super().load(threads)
        columns = {"query": self.query, "positive": self.positive}
        return replace(collection, about={**collection.about, "columns": columns})

    def _tables(self) -> dict[str, list[Path]]:
        """Return the tables of each split."""
        path = Path(os.path.expanduser(self.path))
        if not path.is_dir():
            return {DIVIDED: [table_at(self.path, "path")]}
        corpus = Path(os.path.expanduser(self.corpus)).resolve()
        inside = check_folder(self.path).iterdir()
        found = by_split(table for table in inside if table.resolve() != corpus)
        if not found:
            raise InputError(
                f"path is {self.path}, and {path.absolute()} holds no table of pairs; expected "
                f"{{split}} with {', '.join(SUFFIXES)}, such as train.csv"
            )
        return found


@dataclass
class _Reader:
    """Reads the passages, queries and judgments of the tables of a collection.

    names: the ids of the passages by their keys, once all were read.
    """

    corpus: list[Path]
    query: str
    positive: str
    titles: bool
    names: dict[bytes, str] = field(default_factory=dict)

    def passages(self, files: list[Path]) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yield the passages, (id, title, text): the corpus, then other texts of the pairs."""
        names: dict[bytes, str] = {}
        used: set[str] = set()
        for file, number, passage in self._all(files):
            key = key_of(passage.text)
            if key in names and not (file in self.corpus and passage.name):
                continue
            name = passage.name or key.hex()
            if name in used and passage.of_row:
                name = f"{name}#{key.hex()[:6]}"  # several texts of one page
            if name in used:
                raise tables.fault(
                    file, number, f"the id {show(name)} already belongs to another text"
                )
            used.add(name)
            names.setdefault(key, name)
            yield number, (name, passage.title if self.titles else "", passage.text)
        self.names = names

    def queries(self, files: list[Path]) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yield the different queries of a split's tables: (id, text)."""
        for number, pair, name in self._named(files):
            if name:
                yield number, (name, pair.query)

    def judgments(
        self, every: list[Path], files: list[Path]
    ) -> Iterator[tuple[int, tuple[str, str, int]]]:
        """Yield the different judgments of a split's tables: (query id, passage id, grade)."""
        if not self.names:
            for _ in self.passages(every):
                pass
        grades: dict[tuple[str, str], tuple[int, int]] = {}
        names: dict[bytes, str] = {}
        for number, pair, name in self._named(files):
            query = names.setdefault(key_of(pair.query), name)
            for passage in pair.positives:
                pairing = (query, self.names[key_of(passage.text)])
                line, grade = grades.get(pairing, (number, 0))
                grades[pairing] = (line, max(grade, int(pair.relevant)))
        for (query, passage), (line, grade) in grades.items():
            yield line, (query, passage, grade)

    def _all(self, files: list[Path]) -> Iterator[tuple[Path, int, Passage]]:
        """Yield all passages of the files, each as often as it is listed."""
        for file in files:
            if file in self.corpus:
                for row in tables.rows(file):
                    name = row.text(*tables.IDS, required=False)
                    title = row.text(*tables.TITLE, required=False)
                    yield file, row.number, Passage(row.text(*tables.TEXT), title, name)
            else:
                for number, pair in pair_rows.read(file, self.query, self.positive):
                    for passage in (*pair.positives, *pair.negatives):
                        yield file, number, passage

    def _named(self, files: list[Path]) -> Iterator[tuple[int, Pair, str]]:
        """Yield the line of each pair, the pair, and the query's id; empty for a repeated query."""
        seen: set[bytes] = set()
        for file in files:
            for number, pair in pair_rows.read(file, self.query, self.positive):
                key = key_of(pair.query)
                yield number, pair, "" if key in seen else pair.name or key.hex()
                seen.add(key)


def key_of(text: str) -> bytes:
    """Return a key of 10 bytes: texts that differ only at their ends share it."""
    return hashlib.blake2b(text.strip().encode(), digest_size=10).digest()
