"""Read pairs of a query and its passages, in the columns of three libraries.

`path` is a table in JSONL, CSV, TSV or Parquet, which is the split ``train``, or a folder with one
table per split: ``train.csv``, ``dev.csv``, ..., or several as at the Hugging Face hub,
``train-00000-of-00002.parquet``. `cdmae.collections.pair_rows` describes the columns
of sentence-transformers, Tevatron and FlagEmbedding. JSONL, CSV and TSV may be compressed
(``.gz``).

The passages are all texts of the tables, negatives included, and the passages of the table
`corpus`. Equal texts are one passage, and equal queries of a split are one query with several
positives. Ids are the table's, or else hashes of the text. A system of kind ``run`` reads negatives
and scores from the same table.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import judged, pair_rows, table_files
from cdmae.collections.leakage import DIVIDED, Holdout, HoldoutSeed
from cdmae.collections.pair_rows import Pair, Passage
from cdmae.collections.table_files import SUFFIXES, fault, suffix_of
from cdmae.collections.text_files import Folder, check_readable
from cdmae.errors import InputError
from cdmae.fields import EMPTY, settings, show

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

_Numbered = Iterator[tuple[int, tuple[Any, ...]]]  # lines and rows
_SHARD = re.compile(r"-\d+-of-\d+$")  # of the name of one of several tables of a split
_SAMPLE = 1000  # rows of each table from which the size of a collection is estimated


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
    """Table of further passages, with a column text, perhaps title, and perhaps _id, id, docid or
    passage_id.
    """
    titles: bool = True
    """Whether titles are part of the passages."""
    holdout: Holdout = EMPTY
    holdout_seed: HoldoutSeed = 0

    def parts(self) -> judged.Parts:
        """Find the tables; raises `InputError` for missing tables."""
        tables = self._tables()
        corpus = _table(self.corpus, "corpus") if self.corpus else None
        everything = [table for own in tables.values() for table in own]
        if corpus:
            everything.insert(0, corpus)
        read = _Read(everything, corpus, self.query, self.positive, self.titles)
        return judged.Parts(
            _Rows(everything, read, _Read.passages),
            {split: _Rows(own, read, _Read.queries) for split, own in tables.items()},
            {split: _Rows(own, read, _Read.judgments) for split, own in tables.items()},
        )

    def depends(self) -> list[Path]:
        """List the tables."""
        corpus = [_table(self.corpus, "corpus")] if self.corpus else []
        return [*(table for own in self._tables().values() for table in own), *corpus]

    def load(self, threads: int = 1) -> Collection:
        """Read the collection, and record the columns that the settings name."""
        collection = super().load(threads)
        columns = {"query": self.query, "positive": self.positive}
        return replace(collection, about={**collection.about, "columns": columns})

    def _tables(self) -> dict[str, list[Path]]:
        """Return the tables of each split."""
        path = Path(os.path.expanduser(self.path))
        if not path.is_dir():
            return {DIVIDED: [_table(self.path, "path")]}
        check_readable(path, f"path is {show(self.path)}, and {path.absolute()}")
        corpus = Path(os.path.expanduser(self.corpus)) if self.corpus else None
        found: dict[str, list[Path]] = {}
        for table in sorted(path.iterdir()):
            is_corpus = corpus is not None and corpus.exists() and table.samefile(corpus)
            if table.name.startswith(".") or not suffix_of(table) or is_corpus:
                continue
            split, is_shard = split_of(table)
            if split in found and not is_shard:
                raise InputError(
                    f"{path} holds both {found[split][0].name} and {table.name}; keep one of them"
                )
            found.setdefault(split, []).append(table)
        if not found:
            raise InputError(
                f"path is {self.path}, and {path.absolute()} holds no table of pairs; allowed: "
                f"{{split}} with {', '.join(SUFFIXES)}, such as train.csv"
            )
        return found


def split_of(table: Path) -> tuple[str, bool]:
    """Return the split of a table in a folder, and whether the split has several tables."""
    name = table.name.removesuffix(".gz").removesuffix(suffix_of(table))
    return _SHARD.sub("", name), bool(_SHARD.search(name))


def _table(path: str, key: str) -> Path:
    """Return the path of a table; raises `InputError`, beginning with `key`, for other files."""
    table = Path(os.path.expanduser(path))
    if not table.is_file():
        raise InputError(f"{key} is {show(path)}, and {table.absolute()} is not a file")
    if not suffix_of(table):
        raise InputError(f"{key} is {show(path)}; allowed: a table ({', '.join(SUFFIXES)})")
    return table


@dataclass(frozen=True)
class _Rows:
    """The rows that a function reads from some tables (see `judged.Rows`)."""

    tables: list[Path]
    read: _Read
    of: Callable[[_Read, list[Path]], _Numbered]

    @property
    def path(self) -> Path:
        """Return the table that messages name."""
        return self.tables[0]

    def rows(self) -> _Numbered:
        """Yield the line of each row, and the row."""
        return self.of(self.read, self.tables)

    def size(self) -> tuple[int, float, int]:
        """Estimate three numbers: rows, words per passage, and distinct queries.

        The numbers in the first rows of each table are scaled up to all lines of the tables.
        """
        sample = replace(self.read, most=_SAMPLE, names={}, cut={})
        found = [row for _, row in self.of(sample, self.tables)]
        lines = {table: table_files.count(table) for table in self.tables}
        read = sum(sample.cut.get(table, count) for table, count in lines.items())
        times = sum(lines.values()) / max(1, read)
        words = sum(len(str(row[-1]).split()) for row in found)
        queries = len({row[0] for row in found})
        return round(times * len(found)), words / max(1, len(found)), round(times * queries)


@dataclass
class _Read:
    """Reads the passages, queries and judgments of the tables of a collection.

    tables: all tables, the corpus among them. most: the rows that are read of each table; 0: all.
    names: the ids of the passages by their keys, once all were read. cut: the lines that were read
    of each table with more rows than `most`.
    """

    tables: list[Path]
    corpus: Path | None
    query: str
    positive: str
    titles: bool
    most: int = 0
    names: dict[bytes, str] = field(default_factory=dict)
    cut: dict[Path, int] = field(default_factory=dict)

    def pairs(self, tables: list[Path]) -> Iterator[tuple[Path, int, Pair]]:
        """Yield each pair of some tables, with its table and line."""
        for table in tables:
            pairs = pair_rows.read(table, self.query, self.positive)
            for number, pair in self._first(table, pairs):
                yield table, number, pair

    def passages(self, tables: list[Path]) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yield the passages, (id, title, text): the corpus, then other texts of the pairs."""
        names: dict[bytes, str] = {}
        used: set[str] = set()
        for path, number, passage in self._all(tables):
            key = key_of(passage.text)
            if key in names and not (path == self.corpus and passage.name):
                continue
            name = passage.name or key.hex()
            if name in used:
                raise fault(path, number, f"the id {show(name)} already belongs to another text")
            used.add(name)
            names.setdefault(key, name)
            yield number, (name, passage.title if self.titles else "", passage.text)
        self.names = names

    def _all(self, tables: list[Path]) -> Iterator[tuple[Path, int, Passage]]:
        for table in tables:
            if table == self.corpus:
                for number, passage in self._first(table, pair_rows.read_corpus(table)):
                    yield table, number, passage
                continue
            for _, number, pair in self.pairs([table]):
                for passage in (*pair.positives, *pair.negatives):
                    yield table, number, passage

    def _first(self, table: Path, rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Yield the first rows of a table, and record where the reading ends."""
        for count, (number, row) in enumerate(rows):
            if self.most and count == self.most:
                self.cut[table] = number - 1
                return
            yield number, row

    def queries(self, tables: list[Path]) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yield the different queries of a split's tables: (id, text)."""
        for number, pair, name in self._named(tables):
            if name:
                yield number, (name, pair.query)

    def judgments(self, tables: list[Path]) -> Iterator[tuple[int, tuple[str, str, int]]]:
        """Yield the different judgments of a split's tables: (query id, passage id, grade)."""
        if not self.names:
            for _ in self.passages(self.tables):
                pass
        grades: dict[tuple[str, str], tuple[int, int]] = {}
        names: dict[bytes, str] = {}
        for number, pair, name in self._named(tables):
            query = names.setdefault(key_of(pair.query), name)
            for passage in pair.positives:
                pairing = (query, self.names[key_of(passage.text)])
                line, grade = grades.get(pairing, (number, 0))
                grades[pairing] = (line, max(grade, int(pair.relevant)))
        for (query, passage), (line, grade) in grades.items():
            yield line, (query, passage, grade)

    def _named(self, tables: list[Path]) -> Iterator[tuple[int, Pair, str]]:
        """Yield the line of each pair, the pair, and the query's id; empty for a repeated query."""
        seen: set[bytes] = set()
        for _, number, pair in self.pairs(tables):
            key = key_of(pair.query)
            yield number, pair, "" if key in seen else pair.name or key.hex()
            seen.add(key)


def key_of(text: str) -> bytes:
    """Return a key of 10 bytes: texts that differ only at their ends share it."""
    return hashlib.blake2b(text.strip().encode(), digest_size=10).digest()
