"""BM25 with Lucene, through Anserini, in a JVM inside this process.

The ids of documents are row numbers with leading zeros, because Anserini breaks ties by comparing
ids as text: with the zeros, that is the order of the rows. Anserini rounds scores to four decimals,
and lowers each tied score by 1e-6 more than the one before.
"""

from __future__ import annotations

import json
import time
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.collections.store import count_passages, stream_passages
from cdmae.files import complete, link_folder
from cdmae.log import Progress, say
from cdmae.retrieval import lucene, targets
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.asking import Question


def build(collection: Path | str, folder: Path | str, threads: int = 1) -> None:
    """Index the titles and texts of a collection's passages in `folder`, as one segment.

    The ranking does not depend on the number of threads. The index contains rows, term frequencies
    and lengths, but no text. During indexing, a copy of the text also uses disk space.
    """
    count = count_passages(collection)
    edges = np.linspace(0, count, threads + 1).astype(int).tolist()  # one file per thread
    with complete(folder) as aside:
        texts = aside / "passages"
        texts.mkdir(parents=True)
        with Progress(count, unit="passages", label="write for Lucene") as progress:
            for part, (first, last) in enumerate(pairwise(edges)):
                path = texts / f"{part}.jsonl"
                _write_passages(path, collection, first, last, progress)
        say(f"Lucene indexes {count:,} passages")
        lucene.build(folder, aside, texts, "JsonCollection", threads)


def _write_passages(
    path: Path, collection: Path | str, first: int, last: int, progress: Progress
) -> None:
    """Write the passages `first` to `last` - 1 as JSON lines for Anserini."""
    columns = ["title", "text"]
    with open(path, "w", encoding="utf-8") as file:
        for passages in stream_passages(collection, columns, first=first, last=last):
            for row, passage in enumerate(passages.to_pylist(), progress.done):
                contents = f"{passage['title']} {passage['text']}"
                file.write(json.dumps({"id": f"{row:010}", "contents": contents}) + "\n")
            progress.advance(len(passages))


def search(
    folder: Path | str,
    texts: list[str],
    depth: int,
    k1: float = 0.9,
    b: float = 0.4,
    threads: int = 1,
) -> Run:
    """Rank the best `depth` passages for each text by BM25, ties by row: a run of Q queries.

    Passages that share no word with the query are not ranked. A query may therefore have fewer than
    `depth` passages, or none. The defaults of `k1` and `b` are Anserini's. Scores lack the constant
    factor k1 + 1, as in Lucene.
    """
    return lucene.search((folder, k1, b, True), texts, depth, threads)


def write_runs(
    *,
    folders: list[Path],
    passages: list[Path],
    mined: list[Path],
    indexes: Path,
    collections: list[Path],
    splits: list[str],
    outputs: list[Path],
    depth: int,
    k1: float,
    b: float,
    threads: int = 1,
) -> float:
    """Index collections, and search them for the queries of their splits.

    folders: the distinct collections; passages: for each, the file of the passages that are
    indexed, its own or another collection's. indexes: the folder for the indexes. mined: folders of
    indexes from searches for negatives, which are linked. collections, splits, outputs: one per
    target. Returns the seconds of the search alone.
    """
    known = {path.name: path for folder in mined for path in folder.iterdir() if path.is_dir()}
    for folder, source in zip(folders, passages, strict=True):
        if folder.name in known:
            link_folder(known[folder.name], indexes / folder.name)
        else:
            build(source.parent, indexes / folder.name, threads)
    began = time.monotonic()

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        return search(indexes / collections[number].name, [*chain(*texts)], depth, k1, b, threads)

    targets.search(collections, splits, outputs, depth, find)
    return time.monotonic() - began


def answer(system: dict[str, Any], question: Question) -> Run:
    """Rank passages for a user's query; `system` holds BM25's settings and its `index`."""
    how = (system["index"], system["k1"], system["b"], True)
    return question.load(lucene.Searcher, *how).search(question.text, question.depth)
