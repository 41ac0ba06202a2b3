"""Read a collection in BEIR's layout: your own data, or a BEIR data set (Thakur et al. 2021).

``corpus.jsonl``
    one JSON object per line: ``{"_id": "p1", "title": "...", "text": "..."}``
``queries.jsonl``
    ``{"_id": "q1", "text": "..."}``; optional, because pre-training needs only text
``qrels/{split}.tsv``
    a header, then query id, passage id and grade, separated by tabs; one file per split

Each file may be compressed. The header is optional; its last column is score, grade, relevance,
relevancy, rel or label. Without judgments, all queries form the split ``test``.

At the Hugging Face hub, MTEB's sets have the same columns in tables such as
``corpus/corpus-00000-of-00001.parquet``: the folders ``corpus``, ``queries``, and ``qrels``,
``data`` or ``default``, with the judgments in ``query-id``, ``corpus-id`` and ``score``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cdmae.collections import tables
from cdmae.collections.folders import Folder, by_split, check_folder, tables_at
from cdmae.collections.judged import Parts, Rows
from cdmae.errors import InputError
from cdmae.fields import settings

TABLES = (".jsonl", ".json", ".parquet")  # of passages and queries
JUDGED = ("qrels", "data", "default")  # folders of judgments


@settings
class Settings(Folder):
    """BEIR's layout."""

    path: str
    """Folder with corpus.jsonl, queries.jsonl, qrels/{split}.tsv, or MTEB's tables."""
    titles: bool = True
    """Include titles [BEIR]."""

    def parts(self) -> Parts:
        """Find the file of passages, and the files of queries and judgments for each split."""
        folder = check_folder(self.path)
        corpus = tables_at(folder, "corpus", TABLES)
        if not corpus:
            raise InputError(
                f"path is {folder}, and {folder.absolute()} holds no corpus.jsonl; expected a "
                "folder in BEIR's layout"
            )
        queries, qrels = queries_and_qrels(folder)
        read = partial(tables.passages, titles=self.titles)
        return Parts(Rows.of(corpus, read), queries, qrels)


def queries_and_qrels(folder: Path) -> tuple[dict[str, Rows], dict[str, Rows]]:
    """Return the queries and the judgments in a folder by split."""
    files = [path for name in JUDGED for path in (folder / name).glob("*")]
    # some sets have their judgments a second time in JSONL
    found = by_split(path for path in files if tables.suffix_of(path) == ".tsv") or by_split(files)
    other = next(folder.glob("qrels*"), None)
    if other and not found:
        raise InputError(f"{other} has judgments in another layout; expected qrels/{{split}}.tsv")
    qrels = {split: Rows.of(paths, tables.judgments) for split, paths in found.items()}
    queries = tables_at(folder, "queries", TABLES)
    if qrels and not queries:
        raise InputError(f"{folder} holds judgments but no queries.jsonl; add the queries")
    splits = (qrels or ["test"]) if queries else []
    return dict.fromkeys(splits, Rows.of(queries, tables.queries)), qrels
