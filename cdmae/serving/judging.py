"""Judge the pooled passages of several systems; the judgments are a collection in BEIR's layout.

Pooling follows TREC: for each query, the union of all systems' best passages is judged, in an order
that does not reveal the systems. Each grade is added to ``judgments.jsonl`` and synced to disk
before the next passage is shown. ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` form
the collection that `source: beir` reads. ``pools.jsonl`` records which systems each pool comes
from.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import filelock

from cdmae.errors import InputError
from cdmae.files import complete, read_json, write_json, write_text

GRADES = {  # of TREC Deep Learning
    0: "irrelevant",
    1: "related",
    2: "highly relevant",
    3: "perfectly relevant",
}
SKIPPED = None
DEPTH = 10  # passages of each system in a pool
SPLIT = "test"


@dataclass(frozen=True)
class Passage:
    """A passage of a pool."""

    passage_id: str
    title: str
    text: str


@dataclass(frozen=True)
class Pool:
    """A query and its passages, in the order in which they are judged."""

    query_id: str
    query: str
    systems: list[str]
    passages: list[Passage]


class Judgments:
    """The folder of a collection that is being judged; only one process at a time can open it."""

    def __init__(
        self,
        folder: Path | str,
        corpus: Iterable[dict[str, str]],
        pool: Callable[[str], list[Passage]],
        systems: list[str],
        about: dict[str, Any],
    ) -> None:
        """Open the folder of judgments, or create it.

        corpus: the passages of the collection (passage_id, title, text), which are copied into the
        folder once. pool: returns the pooled passages of a query. systems: the names of the pooled
        systems. about: the name of the judged collection and its number of passages.

        Raises `InputError` if another process has the folder open, if it contains judgments of
        another collection, or if another program made them.
        """
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._own = filelock.FileLock(self.folder / ".lock")
        try:
            self._own.acquire(timeout=0)
        except filelock.Timeout:
            raise InputError(
                f"{folder} is being judged by another process; end it, or give another folder"
            ) from None
        self._pool = pool
        self._systems = systems
        self._lock = threading.RLock()
        try:
            self._open(corpus, about)
        except BaseException:
            self.close()
            raise

    def _open(self, corpus: Iterable[dict[str, str]], about: dict[str, Any]) -> None:
        """Read the recorded judgments; write the files that are still missing."""
        log = self.folder / "judgments.jsonl"
        described = self.folder / "about.json"
        others = [name for name in ("corpus.jsonl", "qrels") if (self.folder / name).exists()]
        if others and not described.exists():
            raise InputError(
                f"{self.folder} contains {others[0]} of a collection that was not made by this "
                "command; give another folder"
            )
        found = read_json(described) if described.exists() else about
        if found != about:
            raise InputError(
                f"{self.folder} has judgments of {_in_words(found)}, but {_in_words(about)} is to "
                "be judged; give another folder"
            )
        write_json(described, about)
        self.pools: dict[str, Pool] = {}
        for line in _read(
            self.folder / "pools.jsonl", {"query_id", "query", "systems", "passages"}
        ):
            passages = [Passage(**passage) for passage in line["passages"]]
            pool = Pool(line["query_id"], line["query"], line["systems"], passages)
            self.pools[pool.query_id] = pool
        queries = _read(self.folder / "queries.jsonl", {"_id", "text"})
        self.queries = {line["_id"]: line["text"] for line in queries}
        self.grades: dict[tuple[str, str], int | None] = {}
        for line in _read(log, {"query_id", "passage_id", "grade"}):
            self.grades[line["query_id"], line["passage_id"]] = line["grade"]
        if not (self.folder / "corpus.jsonl").exists():
            _write_corpus(self.folder / "corpus.jsonl", corpus)
        self._write_qrels()

    def close(self) -> None:
        """Release the folder, so another process can open it."""
        self._own.release()

    def add(self, text: str) -> str:
        """Add a query, unless it exists; return its id."""
        text = " ".join(text.split())
        with self._lock:
            for query_id, known in self.queries.items():
                if known == text:
                    return query_id
            query_id = "q" + hashlib.sha256(text.encode()).hexdigest()[:12]
            _append(self.folder / "queries.jsonl", {"_id": query_id, "text": text})
            self.queries[query_id] = text
            return query_id

    def pool(self, query_id: str) -> Pool:
        """Return a query's pool, made and recorded once, and extended when systems are added."""
        with self._lock:
            known = self.pools.get(query_id)
            if known and set(self._systems) <= set(known.systems):
                return known
            query = self.queries[query_id]
            pooled = [*(known.passages if known else []), *self._pool(query)]
            passages = list({passage.passage_id: passage for passage in pooled}.values())
            passages.sort(key=lambda passage: _shuffled(query_id, passage.passage_id))
            systems = list(dict.fromkeys([*(known.systems if known else []), *self._systems]))
            record = {
                "query_id": query_id,
                "query": query,
                "systems": systems,
                "depth": DEPTH,
                "when": _now(),
                "passages": [vars(passage) for passage in passages],
            }
            _append(self.folder / "pools.jsonl", record)
            self.pools[query_id] = Pool(query_id, query, systems, passages)
            return self.pools[query_id]

    def grade(self, query_id: str, passage_id: str, grade: int | None, who: str) -> None:
        """Record a grade, or None for a skipped passage; the newest grade of a passage counts.

        Raises `InputError` for an unknown query, passage or grade.
        """
        with self._lock:
            known = self.pools.get(query_id)
            if known is None or passage_id not in {each.passage_id for each in known.passages}:
                raise InputError(
                    f"passage {passage_id} is not in the pool of query {query_id}; reload the page"
                )
            if grade is not SKIPPED and grade not in GRADES:
                raise InputError(f"the grade is {grade}; allowed: 0 to {max(GRADES)}")
            record = {
                "query_id": query_id,
                "passage_id": passage_id,
                "grade": grade,
                "who": who,
                "when": _now(),
                "pool": known.systems,
            }
            _append(self.folder / "judgments.jsonl", record)
            self.grades[query_id, passage_id] = grade
            self._write_qrels()

    def done(self) -> int:
        """Return the number of grades; skipped passages do not count."""
        return sum(grade is not SKIPPED for grade in self.grades.values())

    def next(self) -> tuple[str, int] | None:
        """Return the first query and pool index without a grade; None if all are judged."""
        for query_id in list(self.queries):  # another window may add one
            for index, passage in enumerate(self.pool(query_id).passages):
                if (query_id, passage.passage_id) not in self.grades:
                    return query_id, index
        return None

    def _write_qrels(self) -> None:
        lines = [
            f"{query_id}\t{passage_id}\t{grade}\n"
            for (query_id, passage_id), grade in self.grades.items()
            if grade is not SKIPPED
        ]
        if lines:
            text = "".join(["query-id\tcorpus-id\tscore\n", *lines])
            write_text(self.folder / "qrels" / f"{SPLIT}.tsv", text)


def read_queries(path: Path | str) -> list[str]:
    """Read queries from a text file, one per line; in a .jsonl file, under the key ``text``.

    Raises `InputError` with the number of the first wrong line.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); allowed: a text file in UTF-8"
        ) from None
    queries = []
    for number, line in enumerate(lines, 1):
        if path.suffix == ".jsonl" and line.strip():
            try:
                line = json.loads(line)["text"]
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"{path}, line {number} is {line[:40]!r}; allowed: an object such as "
                    '{"text": "a query"}'
                ) from None
        if str(line).strip():
            queries.append(str(line).strip())
    return queries


def _write_corpus(path: Path, corpus: Iterable[dict[str, str]]) -> None:
    with complete(path) as aside, open(aside, "w", encoding="utf-8") as file:
        for passage in corpus:
            record = {
                "_id": passage["passage_id"],
                "title": passage["title"],
                "text": passage["text"],
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _in_words(about: dict[str, Any]) -> str:
    return f"{about.get('collection')} with {about.get('passages')} passages"


def _shuffled(query_id: str, passage_id: str) -> str:
    """Return a sort key that puts passages in a random order, the same in every process."""
    return hashlib.sha256(f"{query_id} {passage_id}".encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _append(path: Path, record: dict[str, Any]) -> None:
    """Add a line to a file and sync it to disk; an error leaves the file unchanged."""
    new = not path.exists()
    line = (json.dumps(record, ensure_ascii=False) + "\n").encode()
    with open(path, "ab", buffering=0) as file:
        length = file.tell()
        try:
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
        except OSError:
            file.truncate(length)
            raise
    if new:  # its name, too, survives a loss of power
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(path: Path, keys: set[str]) -> list[dict[str, Any]]:
    """Read the lines of a file; an incomplete last line, left by a kill, is removed.

    Raises `InputError` for a damaged line, or a line that lacks one of the `keys`.
    """
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with open(path, "r+b") as file:
            file.truncate(len(whole))
    records = []
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not keys <= record.keys():
            raise InputError(
                f"{path}, line {number} is {line[:40]!r}; allowed: a JSON object with the keys "
                f"{', '.join(sorted(keys))}"
            )
        records.append(record)
    return records
