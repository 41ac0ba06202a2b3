"""Read a collection in MS MARCO's layout (Bajaj et al. 2016), such as the queries of TREC DL.

``collection.tsv``
    passage id, text; or, on every line, passage id, title, text (RocketQA's and later corpora)
``queries.{split}.tsv``
    query id, text
``qrels.{split}.tsv``
    TREC's four columns: query id, 0, passage id, grade; optional for a split

Columns are separated by tabs, or in judgments by any white space. There are no headers and no
quotation marks. Each file may be compressed (``.gz``). The official files have these names; rename
TREC DL's files, for example to ``queries.dl19.tsv`` and ``qrels.dl19.tsv``.
"""

from __future__ import annotations

from typing import Any

from cdmae.collections.judged import Parts
from cdmae.collections.leakage import Holdout, HoldoutSeed
from cdmae.collections.text_files import File, Folder, by_split, check_folder, find, grade
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
        passages = find(folder, "collection", ".tsv", layout="MS MARCO's")
        queries = by_split(folder, "queries.")
        qrels = by_split(folder, "qrels.")
        lost = sorted(set(qrels) - set(queries))
        if lost:
            raise InputError(
                f"{qrels[lost[0]]} has no queries; allowed: queries.{lost[0]}.tsv in its folder"
            )
        return Parts(
            File(passages, _passage(self.titles)),
            {split: File(path, _query) for split, path in queries.items()},
            {split: File(path, _judgment) for split, path in qrels.items()},
        )


def _passage(titles: bool) -> Any:
    allowed = (
        "passage id, title, text"
        if titles
        else "passage id, text or, in every line, passage id, title, text"
    )
    first = 0  # the number of columns on line 1

    def parse(number: int, line: str) -> tuple[str, str, str]:
        nonlocal first
        columns = line.split("\t")
        if number == 1:
            first = len(columns)
        numbers = (3,) if titles else (2, 3)
        if len(columns) not in numbers or not columns[0]:
            raise ValueError(_refusal(columns, allowed))
        # a tab within a text would look like the end of a title
        if len(columns) != first:
            raise ValueError(
                f"{len(columns)} columns separated by tabs, but line 1 has {first}; allowed: "
                f"{allowed}"
            )
        title = columns[1] if titles else ""
        return columns[0], title, columns[-1]

    return parse


def _query(number: int, line: str) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) != 2 or not columns[0]:
        raise ValueError(_refusal(columns, "query id, text"))
    return columns[0], columns[1]


def _judgment(number: int, line: str) -> tuple[str, str, int]:
    columns = line.split()
    if len(columns) != 4:
        raise ValueError(
            f"{len(columns)} columns; allowed: the four of TREC (query id, 0, passage id, grade)"
        )
    return columns[0], columns[2], grade(columns[3])


def _refusal(columns: list[str], allowed: str) -> str:
    fault = "the id is empty" if not columns[0] else f"{len(columns)} columns separated by tabs"
    return f"{fault}; allowed: {allowed}"
