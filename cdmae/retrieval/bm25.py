"""BM25 with Lucene, through Anserini, in a JVM inside this process.

The ids of documents are row numbers with leading zeros, because Anserini breaks ties by comparing
ids as text: with the zeros, that is the order of the rows. Anserini rounds scores to four decimals,
and lowers each tied score by 1e-6 more than the one before.

Lucene analyses texts by their language: stop words, stems, the words of Japanese, and pairs of
characters of Chinese and Korean. This module divides texts of other scripts without spaces, such as
Thai, into pairs of characters itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.collections.store import count_passages, stream_passages
from cdmae.files import link_folder, read_json, write_json
from cdmae.languages import scripts
from cdmae.log import say
from cdmae.retrieval import asking, lucene
from cdmae.retrieval.targets import search as search_targets
from cdmae.runs import Run, Target
from cdmae.tokens.tokenise import Texts

if TYPE_CHECKING:
    from cdmae.retrieval.asking import Question


LANGUAGE = "language.json"  # in the folder of an index: Lucene's language, or ""


def build(
    collection: Path | str, folder: Path | str, threads: int = 1, language: str = scripts.AUTO
) -> None:
    """Index the titles and texts of a collection's passages in `folder`, as one segment.

    language: one of `scripts.Language`. The ranking does not depend on the number of threads. The
    index contains rows, term frequencies and lengths, but no text. During indexing, a copy of the
    text also uses disk space.
    """
    count = count_passages(collection)
    if language == scripts.AUTO:
        language = scripts.language_of(Texts(Path(collection)))
    analysed = scripts.lucene_language(language)
    edges = np.linspace(0, count, threads + 1).astype(int).tolist()  # one file per thread
    files = [_documents(collection, *pair, analysed) for pair in pairwise(edges)]
    how = ("-language", analysed) if analysed else ("-pretokenized",)
    say(f"Lucene indexes {count:,} passages, as texts of the language {language}")
    lucene.build(Path(folder), files, count, "JsonCollection", threads, *how)
    write_json(Path(folder) / LANGUAGE, analysed)


def _documents(
    collection: Path | str, first: int, last: int, language: str
) -> Iterator[dict[str, str]]:
    """Yield the passages `first` to `last` - 1 for Anserini."""
    for passages in stream_passages(collection, ["title", "text"], first=first, last=last):
        for passage in passages.to_pylist():
            contents = f"{passage['title']} {passage['text']}"
            if not language:
                contents = scripts.pairs_of_characters(contents)
            yield {"contents": contents}


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
    language = _language(folder)
    if not language:
        texts = [*map(scripts.pairs_of_characters, texts)]
    return lucene.search((folder, k1, b, language), texts, depth, threads)


def _language(folder: Path | str) -> str:
    """Return Lucene's language of an index; a missing index is refused by `lucene.Searcher`."""
    path = Path(folder) / LANGUAGE
    return read_json(path) if path.exists() else "en"


def write_runs(
    *,
    folders: list[Path],
    passages: list[Path],
    mined: list[Path],
    indexes: Path,
    languages: dict[str, str],
    targets: list[Target],
    depth: int,
    k1: float,
    b: float,
    threads: int = 1,
) -> float:
    """Index collections, and search them for the queries of their splits.

    folders: the distinct collections; passages: for each, the file of the passages that are
    indexed, its own or another collection's. indexes: the folder for the indexes. languages: by the
    name of a collection, see `build`. mined: folders of indexes from searches for negatives, which
    are linked. Returns the seconds of the search alone.
    """
    known = {path.name: path for folder in mined for path in folder.iterdir() if path.is_dir()}
    shared: dict[Path, Path] = {}  # the index of each file of passages
    for folder, source in zip(folders, passages, strict=True):
        made = known.get(folder.name) or shared.get(source.resolve())
        if made:
            link_folder(made, indexes / folder.name)
        else:
            build(source.parent, indexes / folder.name, threads, languages[folder.name])
        shared.setdefault(source.resolve(), indexes / folder.name)
    began = time.monotonic()

    def find(target: Target, texts: list[str], depth: int) -> Run:
        return search(indexes / target.collection, texts, depth, k1, b, threads)

    search_targets(targets, depth, find)
    return time.monotonic() - began


def answer(system: dict[str, Any], question: Question) -> Run:
    """Rank passages for a user's query; `system` holds BM25's settings and its `index`."""
    language = _language(system["index"])
    text = question.text if language else scripts.pairs_of_characters(question.text)
    how = (system["index"], system["k1"], system["b"], language)
    return asking.loaded(lucene.Searcher, *how).search(text, question.depth)
