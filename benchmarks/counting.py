"""Compare exact n-gram counts at every position with DuckDB, polars and NumPy.

    python -m benchmarks.counting                                          five million words
    python -m benchmarks.counting --words 5e8 --folder /scratch --forms ours    MS MARCO's size
    python -m benchmarks.counting --tokens results/tokens/tiny/pydocs      the words of a run

Each form runs in its own process with one thread. Ours starts from word-pieces, as the rule does,
and writes counts, table and importance; the peers start from ready word numbers and only count.
DuckDB groups and joins with a memory limit, polars counts over windows, NumPy sorts rows of word
numbers. Own memory excludes mapped files, which the system reclaims when memory is scarce. Every
form writes the same counts, or the benchmark exits with 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import processes, zipf
from benchmarks.tables import table
from cdmae.circumstances import describe
from cdmae.files import read_json, write_json
from cdmae.importance import ami, ngrams
from cdmae.tokens.corpus import read_tokens
from cdmae.tokens.words import words_of

WINDOW = 4
FORMS = {
    "ours": "ours, from word-pieces",
    "duckdb": "DuckDB, GROUP BY and joins",
    "polars": "polars, counts over windows",
    "numpy": "NumPy, sorted rows",
}
SETTINGS = {"pmi": "min", "normaliser": "order", "edges": "literal"}


def duckdb(words: np.ndarray, room: np.ndarray, memory: int) -> np.ndarray:
    """Count by grouping, and by joining the groups with the text."""
    import duckdb
    import pyarrow as pa

    shifted = {f"w{n}": np.append(words[n:], np.zeros(n, np.uint32)) for n in range(WINDOW)}
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(f"{folder}/text.db")
        connection.execute(f"SET threads = 1; SET memory_limit = '{memory}MB'")
        connection.register("given", pa.table({**shifted, "room": room}))
        connection.execute("CREATE TABLE text AS SELECT row_number() OVER () AS p, * FROM given")
        columns, joins = [], []
        for order in range(1, WINDOW + 1):
            by = ", ".join(f"w{n}" for n in range(order))
            connection.execute(
                f"CREATE TABLE n{order} AS SELECT {by}, count(*) AS c FROM text "
                f"WHERE room >= {order} GROUP BY ALL HAVING c > 1"
            )
            found = f"coalesce(n{order}.c, 1)"
            columns.append(f"if(room >= {order}, {found}, 0)::UINTEGER AS c{order}")
            joins.append(f"LEFT JOIN n{order} USING ({by})")
        asked = f"SELECT {', '.join(columns)} FROM text {' '.join(joins)} ORDER BY p"
        counts = connection.execute(asked).fetchnumpy()
        connection.close()
    return np.stack([counts[f"c{order}"] for order in range(1, WINDOW + 1)])


def polars(words: np.ndarray, room: np.ndarray, _: int) -> np.ndarray:
    """Count over windows of equal words, order by order."""
    import polars

    frame = polars.DataFrame({"w0": words, "room": room})
    frame = frame.with_columns(polars.col("w0").shift(-n).alias(f"w{n}") for n in range(1, WINDOW))
    rows = []
    for order in range(1, WINDOW + 1):
        inside = polars.col("room") >= order
        by = [inside.alias("inside"), *(f"w{n}" for n in range(order))]
        count = polars.when(inside).then(polars.len().over(by)).otherwise(0)
        rows.append(frame.select(count.alias("c"))["c"].to_numpy())
    return np.stack(rows).astype(np.uint32)


def numpy(words: np.ndarray, room: np.ndarray, _: int) -> np.ndarray:
    """Count by sorting the rows of word numbers as bytes."""
    counts = np.zeros((WINDOW, len(words)), np.uint32)
    for order in range(1, WINDOW + 1):
        at = np.flatnonzero(room >= order)
        rows = np.ascontiguousarray(words[at[:, None] + np.arange(order)])
        keys = rows.view(np.dtype((np.void, rows.itemsize * order)))[:, 0]
        _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
        counts[order - 1, at] = times[which]
    return counts


PEERS: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "duckdb": duckdb,
    "polars": polars,
    "numpy": numpy,
}


def work(form: str, folder: Path, memory: int) -> None:
    """Write the counts of one form, and the seconds that they took."""
    tokens = read_tokens(folder / "tokens")
    if form != "ours":
        words, segments, _ = words_of(tokens, "word")
        ends = np.repeat(segments[1:], np.diff(segments))
        room = np.minimum(ends - np.arange(len(words)), WINDOW).astype(np.uint8)
    cpu, wall = time.process_time(), time.perf_counter()
    if form == "ours":
        ngrams.count_to(folder / "ngrams", tokens, window=WINDOW, memory=memory * 500_000)
    else:
        counts = PEERS[form](words, room, memory)
    taken = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    if form == "ours":
        cpu = time.process_time()
        ami.estimate(folder / "importance", folder / "ngrams", tokens, SETTINGS)
        taken["importance"] = time.process_time() - cpu
    else:
        np.save(folder / "counts.npy", counts)
    write_json(folder / f"{form}.json", taken)


def equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Compare arrays on disk, block by block."""
    blocks = range(0, one.shape[1], 1 << 22)
    return one.shape == other.shape and all(
        np.array_equal(one[:, at : at + (1 << 22)], other[:, at : at + (1 << 22)]) for at in blocks
    )


def measure(form: str, folder: Path, memory: int) -> dict[str, float]:
    """Run a form in a process of its own; return its seconds, its memory, and its equality."""
    command = [sys.executable, "-m", "benchmarks.counting", "--form", form, "--folder", folder]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    taken = processes.measure([*command, "--memory", str(memory)], env=environment)
    found = read_json(folder / f"{form}.json") | {"own": taken.own}
    counts = np.load(folder / "ngrams/counts.npy", mmap_mode="r")
    mine = folder / "counts.npy"
    found["equal"] = form == "ours" or equal(counts, np.load(mine, mmap_mode="r"))
    mine.unlink(missing_ok=True)
    return found


def main() -> int:
    """Measure every form, print the table, and return 1 if the counts differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=float, default=5e6, help="synthetic ones, by Zipf's law")
    parser.add_argument("--tokens", type=Path, help="a folder of results/tokens instead")
    parser.add_argument("--memory", type=int, default=4000, help="megabytes, of ours and DuckDB")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--folder", type=Path, help="where there is room for what is made up")
    parser.add_argument("--form", choices=FORMS, help="internal: run this form in --folder")
    given = parser.parse_args()
    if given.form:
        work(given.form, given.folder, given.memory)
        return 0
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.tokens:
            (folder / "tokens").symlink_to(given.tokens.resolve())
        else:
            zipf.write_tokens(folder / "tokens", max(1, round(given.words / zipf.WORDS)))
        forms = ["ours", *(form for form in given.forms if form != "ours")]
        found = {form: measure(form, folder, given.memory) for form in forms}
        words = np.load(folder / "ngrams/counts.npy", mmap_mode="r").shape[1]
    rows = [
        {
            "form": FORMS[form],
            "cpu-s": f"{each['cpu']:.2f}",
            "of ours": f"{each['cpu'] / found['ours']['cpu']:.1f} x",
            "seconds": f"{each['wall']:.2f}",
            "own MB": f"{each['own'] / 1e6:.0f}",
            "counts": "equal" if each["equal"] else "DIFFERENT",
        }
        for form, each in found.items()
    ]
    print(f"{words:,} words, n-grams of 1 to {WINDOW} words, on {describe()['processor']}\n")
    print(table(rows))
    print(f"\nthe importance of every word: {found['ours']['importance']:.2f} cpu-s")
    return int(not all(each["equal"] for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
