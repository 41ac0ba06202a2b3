"""Judge the pooled passages of several systems; the judgments are further queries of a collection.

Pooling follows TREC: for each query, the union of all systems' best passages is judged, in an order
that does not reveal the systems. Queries, pools and grades are tables of ``judgments.sqlite``; each
grade is on disk before the next passage is shown. ``queries.jsonl`` and ``qrels/test.tsv`` are
written from them: the folder that `source: queries` reads.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cdmae.errors import InputError
from cdmae.files import write_text

GRADES = {  # of TREC Deep Learning
    0: "irrelevant",
    1: "related",
    2: "highly relevant",
    3: "perfectly relevant",
}
SKIPPED = None
DEPTH = 10  # passages of each system in a pool, by default
SPLIT = "test"
FILE = "judgments.sqlite"
WAIT = 60  # seconds for the transaction of another window or process
SCHEMA = """
CREATE TABLE IF NOT EXISTS about (collection TEXT, passages INTEGER);
CREATE TABLE IF NOT EXISTS queries (query_id TEXT PRIMARY KEY, text TEXT);
CREATE TABLE IF NOT EXISTS pooled (query_id TEXT, system TEXT, PRIMARY KEY (query_id, system));
CREATE TABLE IF NOT EXISTS pools
    (query_id TEXT, passage_id TEXT, title TEXT, text TEXT, PRIMARY KEY (query_id, passage_id));
CREATE TABLE IF NOT EXISTS grades
    (query_id TEXT, passage_id TEXT, grade INTEGER, who TEXT, time TEXT);
"""


@dataclass(frozen=True)
class Passage:
    """A passage of a pool."""

    passage_id: str
    title: str
    text: str


class Judgments:
    """The folder of a collection that is being judged, by any number of threads and processes."""

    def __init__(
        self,
        folder: Path | str,
        pool: Callable[[str], list[Passage]],
        systems: list[str],
        *,
        collection: str,
        passages: int,
        who: str,
    ) -> None:
        """Open the folder of judgments, or create it.

        pool: returns the pooled passages of a query. systems: the names of the pooled systems, each
        with its number of passages.
        collection, passages: the name of the judged collection and its size. who: the name of the
        person who judges.

        Raises `InputError` if the folder contains another collection, or judgments of another one.
        """
        self.folder = Path(folder)
        self.collection = collection
        self.who = who
        self._pool = pool
        self._systems = systems
        others = [name for name in ("queries.jsonl", "qrels") if (self.folder / name).exists()]
        if others and not (self.folder / FILE).exists():
            raise InputError(
                f"{folder} contains {others[0]} but no {FILE}: another program made it, or an "
                "earlier version; give another folder (`source: queries` reads this one as it is)"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._transaction() as database:
            database.executescript(SCHEMA)
            known = database.execute("SELECT * FROM about").fetchone()
            if known is None:
                database.execute("INSERT INTO about VALUES (?, ?)", (collection, passages))
            elif known != (collection, passages):
                raise InputError(
                    f"{folder} has judgments of {known[0]} with {known[1]} passages, but "
                    f"{collection} with {passages} passages is to be judged; give another folder"
                )

    def queries(self) -> dict[str, str]:
        """Return the texts of the queries by id, in the order in which they were added."""
        with self._transaction() as database:
            return dict(database.execute("SELECT query_id, text FROM queries ORDER BY rowid"))

    def add(self, texts: list[str]) -> list[str]:
        """Add queries, unless they exist; return their ids."""
        texts = [" ".join(text.split()) for text in texts]
        ids = ["q" + hashlib.sha256(text.encode()).hexdigest()[:12] for text in texts]
        with self._transaction() as database:
            rows = zip(ids, texts, strict=True)
            database.executemany("INSERT OR IGNORE INTO queries VALUES (?, ?)", rows)
            lines = [
                json.dumps({"_id": query_id, "text": text}, ensure_ascii=False) + "\n"
                for query_id, text in database.execute("SELECT * FROM queries ORDER BY rowid")
            ]
            write_text(self.folder / "queries.jsonl", "".join(lines))
        return ids

    def pool(self, query_id: str) -> list[Passage]:
        """Return a query's pool in the order of judging: made once, extended for new systems."""
        key = (query_id,)
        with self._transaction() as database:
            rows = database.execute("SELECT system FROM pooled WHERE query_id = ?", key).fetchall()
        if not set(self._systems) <= {system for (system,) in rows}:
            found = self._pool(self.queries()[query_id])
            with self._transaction() as database:
                passages = [(query_id, each.passage_id, each.title, each.text) for each in found]
                systems = [(query_id, system) for system in self._systems]
                database.executemany("INSERT OR IGNORE INTO pools VALUES (?, ?, ?, ?)", passages)
                database.executemany("INSERT OR IGNORE INTO pooled VALUES (?, ?)", systems)
        with self._transaction() as database:
            asked = "SELECT passage_id, title, text FROM pools WHERE query_id = ?"
            pool = [Passage(*row) for row in database.execute(asked, key)]
        return sorted(pool, key=lambda passage: _shuffled(query_id, passage.passage_id))

    def grade(self, query_id: str, passage_id: str, grade: int | None, who: str = "") -> None:
        """Record a grade, or None for a skipped passage; the newest grade of a passage counts.

        who: the person; empty: the one that `__init__` names.

        Raises `InputError` for an unknown query, passage or grade.
        """
        if grade is not SKIPPED and grade not in GRADES:
            raise InputError(f"the grade is {grade}; expected 0 to {max(GRADES)}")
        pair = (query_id, passage_id)
        row = (*pair, grade, who or self.who, datetime.now(UTC).isoformat(timespec="seconds"))
        with self._transaction() as database:
            asked = "SELECT 1 FROM pools WHERE query_id = ? AND passage_id = ?"
            if database.execute(asked, pair).fetchone() is None:
                raise InputError(
                    f"passage {passage_id} is not in the pool of query {query_id}; reload the page"
                )
            database.execute("INSERT INTO grades VALUES (?, ?, ?, ?, ?)", row)
            # Other windows wait for the end of the transaction, so the file has every grade.
            _write_qrels(self.folder / "qrels" / f"{SPLIT}.tsv", _newest(database))

    def grades(self) -> dict[tuple[str, str], int | None]:
        """Return the newest grade of each graded or skipped passage, by query and passage."""
        with self._transaction() as database:
            return _newest(database)

    def order(self) -> Iterator[tuple[str, int, Passage]]:
        """Yield query, index and passage in the order of judging; pools are made when due."""
        for query_id in self.queries():
            for index, passage in enumerate(self.pool(query_id)):
                yield query_id, index, passage

    def next(self) -> tuple[str, int] | None:
        """Return the first query and pool index without a grade; None if all are judged."""
        grades = self.grades()
        for query_id, index, passage in self.order():
            if (query_id, passage.passage_id) not in grades:
                return query_id, index
        return None

    def before(self, query_id: str, index: int) -> tuple[str, int] | None:
        """Return the position before another one; of an unknown position, the last one."""
        previous = None
        for query, position, _ in self.order():
            if (query, position) == (query_id, index):
                break
            previous = query, position
        return previous

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction, which an exception undoes."""
        with closing(sqlite3.connect(self.folder / FILE, timeout=WAIT)) as database, database:
            yield database


def read_queries(path: Path | str) -> list[str]:
    """Read queries from a text file, one per line. Raises `InputError` for an unreadable file."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); expected a text file in UTF-8"
        ) from None
    return [line.strip() for line in lines if line.strip()]


def _newest(database: sqlite3.Connection) -> dict[tuple[str, str], int | None]:
    rows = database.execute("SELECT query_id, passage_id, grade FROM grades ORDER BY rowid")
    return {(query_id, passage_id): grade for query_id, passage_id, grade in rows}


def _write_qrels(path: Path, grades: dict[tuple[str, str], int | None]) -> None:
    lines = [
        f"{query_id}\t{passage_id}\t{grade}\n"
        for (query_id, passage_id), grade in grades.items()
        if grade is not SKIPPED
    ]
    if lines:
        write_text(path, "".join(["query-id\tcorpus-id\tscore\n", *lines]))
    else:
        path.unlink(missing_ok=True)


def _shuffled(query_id: str, passage_id: str) -> str:
    """Return a sort key that puts passages in a random order, the same in every process."""
    return hashlib.sha256(f"{query_id} {passage_id}".encode()).hexdigest()
