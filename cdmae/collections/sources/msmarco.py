"""Read a collection in MS MARCO's layout (Bajaj et al. 2016), such as the queries of TREC DL.

``collection.tsv``
    passage id, text; or, on every line, passage id, title, text (RocketQA's and later corpora)
``queries.{split}.tsv``
    query id, text
``qrels.{split}.tsv``
    TREC's four columns: query id, 0, passage id, grade; optional for a split

Columns are separated by tabs, or in judgments by any white space. There are no headers and no
quotation marks. Each file may be compressed. The official files have these names; rename TREC DL's
files, for example to ``queries.dl19.tsv`` and ``qrels.dl19.tsv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cdmae.collections import tables
from cdmae.collections.folders import Folder, by_split, check_folder, find
from cdmae.collections.judged import Parts, Rows
from cdmae.collections.leakage import Holdout, HoldoutSeed
from cdmae.errors import InputError
from cdmae.fields import EMPTY, settings


@settings
class Settings(Folder):
    """Settings of a collection in MS MARCO's layout."""

    path: str
    """Folder with collection.tsv, queries.{split}.tsv and qrels.{split}.tsv; a relative path begins
    at the working directory.
    """
    titles: bool = False
    """Whether passages have titles: collection.tsv then needs three columns [official: none]."""
    holdout: Holdout = EMPTY
    holdout_seed: HoldoutSeed = 0

    def parts(self) -> Parts:
        """Find the file of passages, and the files of queries and judgments for each split."""
        folder = check_folder(self.path)
        collection = find(folder, "collection", ".tsv", layout="MS MARCO's")
        queries = by_split(folder, "queries.")
        qrels = by_split(folder, "qrels.")
        lost = sorted(set(qrels) - set(queries))
        if lost:
            raise InputError(
                f"{qrels[lost[0]]} has no queries; expected queries.{lost[0]}.tsv in its folder"
            )
        asked = partial(tables.queries, columns=("query_id", "text"))
        return Parts(
            Rows.of(collection, _passages, self.titles),
            {split: Rows.of(path, asked) for split, path in queries.items()},
            {split: Rows.of(path, tables.judgments) for split, path in qrels.items()},
        )


def _passages(path: Path, titles: bool) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Read the passages; all lines have as many columns as the first one."""
    _, first = next(tables.lines(path), (1, ""))
    columns = ("passage_id", "text")
    if titles or first.count("\t") == 2:
        columns = ("passage_id", "title", "text")
    return tables.passages(path, columns, titles=titles)
