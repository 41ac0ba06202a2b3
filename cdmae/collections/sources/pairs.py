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
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import judged, pair_rows
from cdmae.collections.leakage import DIVIDED, HOLDOUT, HOLDOUT_SEED, Shares
from cdmae.collections.pair_rows import Pair, Passage
from cdmae.collections.table_files import SUFFIXES, fault, suffix_of
from cdmae.collections.text_files import Folder, check_readable
from cdmae.errors import InputError
from cdmae.fields import setting, settings, show

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

_SHARD = re.compile(r"-\d+-of-\d+$")  # of the name of one of several tables of a split
_SAMPLE = 1000  # rows from which the size of a table is estimated


@settings
class Settings(Folder):
    """Settings of a collection of pairs."""

    path: str = setting(
        meaning="table of pairs (.jsonl, .csv, .tsv, .parquet), or folder with one table per "
        "split; a relative path begins at the working directory"
    )
    query: str = setting(
        "", meaning="column of the queries; empty: anchor, query or question, whichever exists"
    )
    positive: str = setting(
        "",
        meaning="column of the relevant passages; empty: positive, pos, positive_passages or "
        "answer, whichever exists",
    )
    corpus: str = setting(
        "",
        meaning="table of further passages, with a column text, perhaps title, and perhaps _id, "
        "id, docid or passage_id",
    )
    titles: bool = setting(True, meaning="whether titles are part of the passages")
    holdout: Shares = setting({}, **HOLDOUT)
    holdout_seed: int = setting(0, **HOLDOUT_SEED)

    def parts(self) -> judged.Parts:
        """Find the tables; raises `InputError` for missing tables."""
        tables = self._tables()
        corpus = _table(self.corpus, "corpus") if self.corpus else None
        read = _Read(tables, corpus, self.query, self.positive, self.titles)
        return judged.Parts(
            _Rows(corpus or next(iter(tables.values()))[0], read.passages),
            {split: _Rows(own[0], read.of(split, read.queries)) for split, own in tables.items()},
            {split: _Rows(own[0], read.of(split, read.judgments)) for split, own in tables.items()},
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
    """Rows read by a function (see `judged.Rows`), with an estimate of their number."""

    path: Path
    read: Callable[[], Iterator[tuple[int, tuple[Any, ...]]]]

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the line of each row, and the row."""
        return self.read()

    def size(self) -> tuple[int, float, int]:
        """Estimate three numbers: rows, words per passage, and distinct queries."""
        found = [row for _, row in islice(self.rows(), _SAMPLE)]
        words = sum(len(str(row[-1]).split()) for row in found)
        count = len(found)
        if count == _SAMPLE:
            letters = sum(len(str(value)) for row in found for value in row)
            count = max(count, round(count * self.path.stat().st_size / max(1, letters)))
        share = len({row[0] for row in found}) / max(1, len(found))
        return count, words / max(1, len(found)), round(share * count)


class _Read:
    """The passages, queries and judgments of the tables of a collection."""

    def __init__(
        self,
        tables: dict[str, list[Path]],
        corpus: Path | None,
        query: str,
        positive: str,
        titles: bool,
    ) -> None:
        self.tables = tables
        self.corpus = corpus
        self.columns = (query, positive)
        self.titles = titles
        self.names: dict[bytes, str] = {}  # ids of passages by their keys, once they were all read

    def of(self, split: str, read: Callable[..., Any]) -> Callable[[], Iterator[Any]]:
        """Return a function that reads the tables of a split."""
        return lambda: read(self.tables[split])

    def pairs(self, tables: list[Path]) -> Iterator[tuple[Path, int, Pair]]:
        """Yield each pair of some tables, with its table and line."""
        for table in tables:
            for number, pair in pair_rows.read(table, *self.columns):
                yield table, number, pair

    def passages(self) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yield all passages, (id, title, text): the corpus, then other texts of the pairs."""
        names: dict[bytes, str] = {}
        used: set[str] = set()
        for path, number, passage in self._all():
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

    def _all(self) -> Iterator[tuple[Path, int, Passage]]:
        if self.corpus:
            for number, passage in pair_rows.read_corpus(self.corpus):
                yield self.corpus, number, passage
        for tables in self.tables.values():
            for table, number, pair in self.pairs(tables):
                for passage in (*pair.positives, *pair.negatives):
                    yield table, number, passage

    def queries(self, tables: list[Path]) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yield the different queries of a split's tables: (id, text)."""
        for number, pair, name in self._named(tables):
            if name:
                yield number, (name, pair.query)

    def judgments(self, tables: list[Path]) -> Iterator[tuple[int, tuple[str, str, int]]]:
        """Yield the different judgments of a split's tables: (query id, passage id, grade)."""
        if not self.names:
            for _ in self.passages():
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
