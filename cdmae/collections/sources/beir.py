"""Read a collection in BEIR's layout: your own data, or a BEIR data set (Thakur et al. 2021).

``corpus.jsonl``
    one JSON object per line: ``{"_id": "p1", "title": "...", "text": "..."}``
``queries.jsonl``
    ``{"_id": "q1", "text": "..."}``; optional, because pre-training needs only text
``qrels/{split}.tsv``
    a header, then query id, passage id and grade, separated by tabs; one file per split

Each file may be compressed. The header is optional; its last column is score, grade, relevance,
relevancy, rel or label. Without judgments, all queries form the split ``test``.
"""

from __future__ import annotations

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
    """Settings of a collection in BEIR's layout."""

    path: str
    """Folder with corpus.jsonl, queries.jsonl and qrels/{split}.tsv; a relative path begins at the
    working directory.
    """
    titles: bool = True
    """Whether titles are part of the passages [BEIR: title and text joined]."""
    holdout: Holdout = EMPTY
    holdout_seed: HoldoutSeed = 0

    def parts(self) -> Parts:
        """Find the file of passages, and the files of queries and judgments for each split."""
        folder = check_folder(self.path)
        corpus = find(folder, "corpus", ".jsonl", layout="BEIR's")
        passages = Rows.of(corpus, partial(tables.passages, titles=self.titles))
        queries = find(folder, "queries", ".jsonl")
        judged = _qrels_paths(folder / "qrels")
        qrels = {split: Rows.of(path, tables.judgments) for split, path in judged.items()}
        if queries is None:
            if qrels:
                raise InputError(
                    f"{folder} holds judgments in qrels but no queries.jsonl; add the queries"
                )
            return Parts(passages, {}, {})
        by_split = dict.fromkeys(qrels or ["test"], Rows.of(queries, tables.queries))
        return Parts(passages, by_split, qrels)


def _qrels_paths(folder: Path) -> dict[str, Path]:
    """Return the files of judgments by split; refuse judgments where they would not be read."""
    layout = f"{folder.name}/{{split}}.tsv, such as {folder.name}/test.tsv"
    loose = sorted(path.name for path in folder.parent.glob("qrels*") if path.is_file())
    if loose:
        raise InputError(f"{folder.parent / loose[0]} is a file; expected a folder with {layout}")
    if not folder.is_dir():
        return {}
    paths = by_split(folder)
    names = sorted(path.name for path in folder.glob("[!.]*"))
    if names and not paths:
        raise InputError(f"{folder} holds {', '.join(names[:3])} but no .tsv; expected {layout}")
    return paths
