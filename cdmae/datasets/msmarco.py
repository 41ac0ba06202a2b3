"""MS MARCO's passages (Bajaj et al. 2016), TREC Deep Learning's queries, or anything in their layout.

=========================  =====================================================================================
``collection.tsv``         passage id, text; or passage id, title, text (the corpus of RocketQA and later work)
``queries.{split}.tsv``    query id, text
``qrels.{split}.tsv``      TREC's four columns: query id, 0, passage id, grade; a split may have none
=========================  =====================================================================================

Columns are separated by tabs (in judgments by any space), without header and quoting; any file may be packed (``.gz``).
The official files fit by name; TREC DL's are renamed, such as ``queries.dl19.tsv`` and ``qrels.dl19.tsv``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.datasets import _judged_files
from cdmae.datasets._judged_files import File
from cdmae.errors import InputError
from cdmae.settings import setting

if TYPE_CHECKING:
    from cdmae import files


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The keys of a collection in MS MARCO's layout."""

    path: str = setting(meaning="folder with collection.tsv, queries.{split}.tsv and qrels.{split}.tsv")
    titles: bool = setting(
        False, meaning="whether passages have titles: collection.tsv then needs three columns", source="official: none"
    )


def splits(settings: Settings) -> dict[str, bool]:
    """Split -> whether it has judgments: one split per file of queries; raises `InputError` for missing files."""
    _, queries, qrels = _files(settings)
    return {split: split in qrels for split in queries}


def depends(settings: Settings) -> list[Path]:
    """The files the collection is made from."""
    passages, queries, qrels = _files(settings)
    return [file.path for file in [passages, *queries.values(), *qrels.values()]]


def version(settings: Settings) -> dict[str, str]:
    """Nothing but the files decides."""
    return {}


def check(settings: Settings, name: str) -> None:
    """Read all files and raise `InputError`, with file and line, for what is wrong with the collection `name`."""
    try:
        _judged_files.check(*_files(settings))
    except InputError as error:
        raise InputError(f"collections.{name}: {error}") from None


def load(settings: Settings, seed: int) -> files.Collection:
    """Read the collection; `seed` is not used, nothing being drawn."""
    return _judged_files.load(*_files(settings), {"source": "msmarco", "titles": settings.titles})


def _files(settings: Settings) -> tuple[File, dict[str, File], dict[str, File]]:
    """The files of the passages, and by split of the queries and the judgments."""
    folder = _judged_files.check_folder(settings.path)
    passages = _judged_files.find(folder, "collection", ".tsv")
    if passages is None:
        raise InputError(f"{folder} holds no collection.tsv or collection.tsv.gz; allowed: MS MARCO's layout")
    queries, qrels = (_by_split(folder, kind) for kind in ("queries", "qrels"))
    lost = sorted(set(qrels) - set(queries))
    if lost:
        raise InputError(f"{qrels[lost[0]]} has no queries beside it; allowed: queries.{lost[0]}.tsv")
    return (
        File(passages, _passage(settings.titles)),
        {split: File(path, _query) for split, path in queries.items()},
        {split: File(path, _judgment) for split, path in qrels.items()},
    )


def _by_split(folder: Path, kind: str) -> dict[str, Path]:
    names = {path.name.removesuffix(".gz") for path in folder.glob(f"{kind}.*.tsv*")}
    found = sorted(name[len(kind) + 1 : -len(".tsv")] for name in names if name.endswith(".tsv"))
    return {split: path for split in found if (path := _judged_files.find(folder, f"{kind}.{split}", ".tsv"))}


def _passage(titles: bool) -> Any:
    allowed = "passage id, title, text" if titles else "passage id, text or passage id, title, text"

    def parse(number: int, line: str) -> tuple[str, str, str]:
        columns = line.split("\t")
        if len(columns) == 3 and columns[0]:
            return columns[0], columns[1] if titles else "", columns[2]
        if len(columns) == 2 and columns[0] and not titles:
            return columns[0], "", columns[1]
        raise ValueError(_refusal(columns, allowed))

    return parse


def _query(number: int, line: str) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) != 2 or not columns[0]:
        raise ValueError(_refusal(columns, "query id, text"))
    return columns[0], columns[1]


def _judgment(number: int, line: str) -> tuple[str, str, int]:
    columns = line.split()
    if len(columns) != 4:
        raise ValueError(f"{len(columns)} columns; allowed: the four of TREC (query id, 0, passage id, grade)")
    try:
        return columns[0], columns[2], int(columns[3])
    except ValueError:
        raise ValueError(f"the grade is {columns[3]!r}; allowed: a whole number") from None


def _refusal(columns: list[str], allowed: str) -> str:
    found = "the id is empty" if not columns[0] else f"{len(columns)} columns separated by tabs"
    return f"{found}; allowed: {allowed}"
