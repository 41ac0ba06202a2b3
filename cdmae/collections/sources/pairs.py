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
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.collections import Source, judged, pair_rows, tables
from cdmae.collections.folders import by_split, check_folder, table_at
from cdmae.collections.leakage import DIVIDED
from cdmae.collections.pair_rows import Pair, Passage
from cdmae.collections.tables import SUFFIXES
from cdmae.errors import InputError
from cdmae.fields import settings, show
from cdmae.log import say

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


@settings
class Settings(Source):
    """Pairs of a query and a passage."""

    path: str
    """A table (.jsonl, .json, .csv, .tsv, .parquet), or a folder with a table per split."""
    query: str = ""
    """Column of queries; empty: anchor, query or question."""
    positive: str = ""
    """Column of relevant passages; empty: positive, pos, positive_passages,
    positive_ctxs, answer, passage or context."""
    corpus: str = ""
    """Table of further passages (id, title, text)."""
    titles: bool = True
    """Include titles."""

    def own_splits(self) -> dict[str, bool]:
        """Return the split of each table; all have judgments."""
        return dict.fromkeys(self.files(), True)

    def depends(self) -> list[Path]:
        """List the tables; raises `InputError` for missing tables."""
        corpus = [table_at(self.corpus, "corpus")] if self.corpus else []
        return corpus + [table for files in self.files().values() for table in files]

    def files(self) -> dict[str, list[Path]]:
        """Return the tables of each split; raises `InputError` if there are none."""
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

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the passages and the words per passage; count the queries of each split."""
        queries = {
            split: len({key_of(pair.query) for pair in self._pairs(files)})
            for split, files in self.files().items()
        }
        passages = judged.Rows(self.depends(), lambda _: enumerate(self._passages({})))
        return *passages.size(), queries

    def read(self) -> Collection:
        """Read the tables."""
        import pandas as pd

        from cdmae.collections.store import table_of

        names: dict[str, str] = {}
        table = table_of(self._passages(names))
        rows = []
        for split, files in self.files().items():
            ignored = pair_rows.ignored(files[0], self.query, self.positive)
            if ignored:
                say(f"{files[0]}: ignored columns: {', '.join(map(show, ignored))}")
            asked: dict[str, str] = {}
            keys: dict[str, str] = {}
            is_relevant = False
            for pair in self._pairs(files):
                key = key_of(pair.query)
                query = asked.setdefault(key, _own_id(pair.name, key, keys))
                keys[query] = key
                is_relevant |= pair.relevant
                for passage in pair.positives:
                    name = names[key_of(passage.text)]
                    rows.append((split, query, pair.query, name, int(pair.relevant)))
            if not is_relevant:
                raise InputError(f"{files[0]} marks no passage as relevant; expected a label of 1")
        columns = {"query": self.query, "positive": self.positive}  # for tables that are runs
        about = {"source": "pairs", "titles": self.titles, "columns": columns}
        frame = pd.DataFrame(rows, columns=judged.JUDGED)
        return judged.collected(table, frame, self.own_splits(), about)

    def _pairs(self, files: Iterable[Path]) -> Iterator[Pair]:
        """Yield the pairs of some tables."""
        for file in files:
            for _, pair in pair_rows.read(file, self.query, self.positive):
                yield pair

    def _passages(self, names: dict[str, str]) -> Iterator[tuple[str, str, str]]:
        """Yield the passages, (id, title, text): the corpus, then other texts of the pairs.

        names: receives the ids by the passages' keys. Several texts of one page get different ids;
        equal texts are one passage, unless a corpus names them differently.
        """
        keys: dict[str, str] = {}  # of the texts, by their ids
        for passage in self._texts():
            key = key_of(passage.text)
            if key in names and not (passage.of_corpus and passage.name):
                continue
            name = _own_id(passage.name, key, keys)
            if name in keys:
                continue
            keys[name] = key
            names.setdefault(key, name)
            yield name, passage.title if self.titles else "", passage.text

    def _texts(self) -> Iterator[Passage]:
        """Yield all passages of the tables, each as often as it is listed."""
        if self.corpus:
            for row in tables.rows(table_at(self.corpus, "corpus")):
                name, title, text = row.passage()
                yield Passage(text, title, name, of_corpus=True)
        for pair in self._pairs(chain.from_iterable(self.files().values())):
            yield from (*pair.positives, *pair.negatives)


def _own_id(name: str, key: str, keys: Mapping[str, str]) -> str:
    """Return a text's id, with a part of its key if another text has it; keys: of texts, by id."""
    own = name or key
    return own if keys.get(own, key) == key else f"{own}#{key[:6]}"


def key_of(text: str) -> str:
    """Return a key of 20 digits: texts that differ only at their ends share it."""
    return hashlib.blake2b(text.strip().encode(), digest_size=10).hexdigest()
