"""Read a collection in MS MARCO's layout (Bajaj et al. 2016), such as the queries of TREC DL.

``collection.tsv``
    passage id, text; or, on every line, passage id, title, text (RocketQA's and later corpora)
``queries.{split}.tsv``
    query id, text; in LoTTE (Santhanam et al. 2022), ``questions.{split}.tsv``
``qrels.{split}.tsv``
    TREC's four columns: query id, 0, passage id, grade; optional for a split. In LoTTE,
    ``qas.{split}.jsonl`` with ``qid`` and ``answer_pids``

Columns are separated by tabs, or in judgments by any white space. There are no headers and no
quotation marks. Each file may be compressed. The official files have these names; rename TREC DL's
files, for example to ``queries.dl19.tsv`` and ``qrels.dl19.tsv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cdmae.collections import tables
from cdmae.collections.folders import Folder, by_split, check_folder, tables_at
from cdmae.collections.judged import Parts, Rows
from cdmae.errors import InputError
from cdmae.fields import settings


@settings
class Settings(Folder):
    """MS MARCO's layout."""

    path: str
    """Folder with collection.tsv, queries.{split}.tsv, qrels.{split}.tsv, or LoTTE's files."""
    titles: bool = False
    """Read titles from the third column of collection.tsv."""

    def parts(self) -> Parts:
        """Find the file of passages, and the files of queries and judgments for each split."""
        folder = check_folder(self.path)
        collection = tables_at(folder, "collection", (".tsv",))
        if not collection:
            raise InputError(
                f"path is {folder}, and {folder.absolute()} holds no collection.tsv; expected a "
                "folder in MS MARCO's layout"
            )
        queries = _named(folder, "queries") | _named(folder, "questions")
        qrels = _named(folder, "qrels") | _named(folder, "qas")
        lost = sorted(set(qrels) - set(queries))
        if lost:
            raise InputError(
                f"{qrels[lost[0]][0]} has no queries; expected queries.{lost[0]}.tsv in its folder"
            )
        asked = partial(tables.queries, columns=("query_id", "text"))
        return Parts(
            Rows.of(collection, partial(_passages, titles=self.titles)),
            {split: Rows.of(paths, asked) for split, paths in queries.items()},
            {split: Rows.of(paths, tables.judgments) for split, paths in qrels.items()},
        )


def _named(folder: Path, name: str) -> dict[str, list[Path]]:
    """Return the tables ``{name}.{split}.*`` of a folder by split."""
    found = by_split(folder.glob(f"{name}.*.*"))
    return {stem.removeprefix(f"{name}."): paths for stem, paths in found.items()}


def _passages(path: Path, titles: bool) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Read the passages; all lines have as many columns as the first one."""
    _, first = next(tables.lines(path), (1, ""))
    columns = ("passage_id", "text")
    if titles or first.count("\t") == 2:
        columns = ("passage_id", "title", "text")
    return tables.passages(path, columns, titles=titles)
