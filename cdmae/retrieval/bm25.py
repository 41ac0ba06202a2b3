"""BM25 over an inverted index by Lucene, ranked as pyserini ranks, without the detour through Python objects.

An index has one Lucene document per passage, in the order of the passages: Lucene's number *is* the row. So no id is
looked up, ties come by row for nothing, and a search costs what Lucene costs. The passages' ids are stored where
Anserini stores them, so that pyserini's LuceneSearcher can open an index, too: with a whole JDK, or with this runtime
if ``lucene.machine()`` is called before pyserini is imported.

P passages, Q queries, K hits of a query.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cdmae.collections.store import count_passages, stream_passages
from cdmae.files import complete
from cdmae.log import Progress
from cdmae.retrieval import lucene
from cdmae.retrieval.lucene import java
from cdmae.runs import Run

ID, CONTENTS = "id", "contents"  # Anserini's names of the fields
BUFFER = 256.0  # MB of postings in memory, over all threads
BATCH = 256  # passages handed to a thread at once
AHEAD = 4  # batches, or 4 x 16 queries, that a thread has waiting
LUCENE = "org.apache.lucene"

Batch = tuple[list[str], list[str]]  # ids, and texts


# --- the index -------------------------------------------------------------------------------------------------------


def build(collection: Path | str, folder: Path | str, threads: int = 1) -> None:
    """Index the passages of the folder `collection` by title and text as the folder `folder`, one segment.

    Each thread indexes a range of rows; the parts are joined in order, so that the index, and what it ranks, does not
    depend on the number of threads. Kept are ids, term frequencies and lengths, not the text.
    """
    count = count_passages(collection)
    threads = max(1, min(threads, count // BATCH))
    cuts = np.linspace(0, count, threads + 1).astype(int).tolist()
    with complete(folder) as aside, lucene.speaking(folder):
        parts = [aside / f"part{i}" for i in range(threads)]
        writers = [_writer(part, buffer=max(16.0, BUFFER / threads)) for part in parts]
        rows = [_batches(collection, first, last) for first, last in pairwise(cuts)]
        with ExitStack() as stack, Progress(count, unit="passages", label="index BM25") as progress:
            pools = [stack.enter_context(lucene.Threads(1)) for _ in parts]
            _fill(writers, rows, pools, progress)
        for writer in writers:
            writer.close()
        _join(parts, aside)


def _writer(folder: Path, *, buffer: float = 16.0, joining: bool = False) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    config = java(f"{LUCENE}.index.IndexWriterConfig")(lucene.analyser())
    config.setSimilarity(java(f"{LUCENE}.search.similarities.BM25Similarity")())  # decides how lengths are kept
    config.setRAMBufferSizeMB(buffer)
    config.setUseCompoundFile(False)
    if joining:
        policy = java(f"{LUCENE}.index.LogDocMergePolicy")()  # the one that keeps the order of the documents
        policy.setMergeFactor(1 << 20)  # everything in one go
        policy.setNoCFSRatio(0.0)
    else:
        policy = java(f"{LUCENE}.index.NoMergePolicy").INSTANCE
    config.setMergePolicy(policy)
    return java(f"{LUCENE}.index.IndexWriter")(lucene.folder(folder), config)


def _fill(writers: list[Any], batches: list[Iterator[Batch]], pools: list[lucene.Threads], progress: Progress) -> None:
    """Hand the passages over in batches, to each writer in turn and never far ahead of it."""
    adds = [_add(writer) for writer in writers]
    waiting: list[deque[tuple[Any, int]]] = [deque() for _ in writers]
    open_ = set(range(len(writers)))
    while open_:
        for i in sorted(open_):
            batch = next(batches[i], None)
            if batch is not None:
                ids, texts = (java("java.util.Arrays").asList(*each) for each in batch)
                waiting[i].append((pools[i].submit(adds[i], texts, ids.iterator()), len(batch[0])))
            while waiting[i] and (batch is None or len(waiting[i]) > AHEAD):
                future, count = waiting[i].popleft()
                future.get()
                progress.advance(count)
            if batch is None:
                open_.remove(i)


def _add(writer: Any) -> Any:
    """A function, to be called by one thread, that adds a document for each of a list of texts with the next id."""
    kind = java(f"{LUCENE}.document.FieldType")()
    kind.setIndexOptions(java(f"{LUCENE}.index.IndexOptions").DOCS_AND_FREQS)
    kind.freeze()
    signature = "(Ljava/lang/String;Ljava/lang/CharSequence;Lorg/apache/lucene/index/IndexableFieldType;)V"
    contents = java(f"{LUCENE}.document.Field")(CONTENTS, "", kind, signature=signature)
    stored = java(f"{LUCENE}.document.Field$Store").YES
    signature = "(Ljava/lang/String;Ljava/lang/String;Lorg/apache/lucene/document/Field$Store;)V"
    name = java(f"{LUCENE}.document.StringField")(ID, "", stored, signature=signature)
    order = java(f"{LUCENE}.document.BinaryDocValuesField")(
        ID, java(f"{LUCENE}.util.BytesRef")()
    )  # Anserini's for ties
    document = java(f"{LUCENE}.document.Document")()
    for field in (contents, name, order):
        document.add(field)
    field, text = f"{LUCENE}.document.Field", "java.lang.String"
    fill = lucene.method(field, "setStringValue", "void", text)
    bytes_ = lucene.made(f"{LUCENE}.util.BytesRef", "java.lang.CharSequence")
    fill_order = lucene.given(lucene.method(field, "setBytesValue", "void", f"{LUCENE}.util.BytesRef"), order)
    fill_id = lucene.both(lucene.given(fill, name), lucene.then(bytes_, fill_order))
    add = lucene.method(f"{LUCENE}.index.IndexWriter", "addDocument", "long", "java.lang.Iterable")
    return lucene.each(lucene.given(fill, contents), fill_id, lucene.given(add, writer, document))


def _batches(collection: Path | str, first: int, last: int) -> Iterator[Batch]:
    """Ids, and titles and texts joined, of the passages `first` to `last`, `BATCH` at a time."""
    for passages in stream_passages(collection, rows=16 * BATCH, first=first, last=last):
        for batch in passages.to_batches(max_chunksize=BATCH):
            ids, titles, texts = (column.to_pylist() for column in batch.columns)
            yield ids, [f"{title} {text}" if title else text for title, text in zip(titles, texts, strict=True)]


def _join(parts: list[Path], folder: Path) -> None:
    """Merge the indexes `parts`, in this order, into one segment in `folder`; they are removed."""
    writer = _writer(folder, joining=True)
    writer.addIndexes(*[lucene.folder(part) for part in parts])
    writer.forceMerge(1)
    writer.close()
    for part in parts:
        shutil.rmtree(part)
    (folder / "write.lock").unlink(missing_ok=True)


# --- search ----------------------------------------------------------------------------------------------------------


def search(folder: Path | str, texts: list[str], depth: int, k1: float = 0.9, b: float = 0.4, threads: int = 1) -> Run:
    """The best `depth` passages for each of `texts` by BM25(k1, b), ties by row: a run of Q queries.

    A passage without any word of the query is no hit, so that a query may have fewer hits than `depth`, or none.
    `k1` and `b` default to those of Anserini; scores lack the constant factor k1 + 1, as Lucene's do.
    """
    starts, held = np.zeros(len(texts) + 1, np.int64), 0
    with lucene.speaking(folder), lucene.Threads(threads) as pool:
        reader = java(f"{LUCENE}.index.DirectoryReader").open(lucene.folder(folder))
        function = _search(reader, depth, k1, b)
        most = len(texts) * min(depth, reader.maxDoc())
        passages, scores = np.empty(most, np.int32), np.empty(most, np.float32)  # what is not filled takes no memory
        with Progress(len(texts), unit="queries", label="search BM25") as progress:
            waiting: deque[Any] = deque()
            for text in [*texts, *[None] * len(texts)]:
                if text is not None:
                    waiting.append(pool.submit(function, text))
                if waiting and (text is None or len(waiting) > 16 * AHEAD * threads):
                    hits, values = waiting.popleft().get()
                    cut = slice(held, held + len(hits))
                    passages[cut], scores[cut] = np.array(hits, np.int32), np.array(values, np.float32)
                    held = cut.stop
                    starts[progress.done + 1] = held
                    progress.advance()
        reader.close()
    return Run(passages[:held], scores[:held], starts)


def _search(reader: Any, depth: int, k1: float, b: float) -> Any:
    """A function from the text of a query to its hits, to be called by Java's threads."""
    searchers = java(f"{LUCENE}.search.IndexSearcher")
    searchers.setMaxClauseCount((1 << 31) - 1)  # 1,024 words otherwise, and a query may be a long passage
    searcher = searchers(reader, signature="(Lorg/apache/lucene/index/IndexReader;)V")
    searcher.setSimilarity(java(f"{LUCENE}.search.similarities.BM25Similarity")(k1, b))
    generator = "io.anserini.search.query.BagOfWordsQueryGenerator"
    types = ("java.lang.String", f"{LUCENE}.analysis.Analyzer", "java.lang.String")
    query = lucene.method(generator, "buildQuery", f"{LUCENE}.search.Query", *types)
    query = lucene.given(query, java(generator)(), CONTENTS, lucene.analyser())
    top = lucene.method(
        f"{LUCENE}.search.IndexSearcher", "search", f"{LUCENE}.search.TopDocs", f"{LUCENE}.search.Query", "int"
    )
    top = lucene.given(lucene.given(top, searcher), depth, at=1)
    return lucene.then(lucene.then(query, top), lucene.hits())
