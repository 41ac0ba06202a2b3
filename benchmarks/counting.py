"""Compare exact n-gram counts at every position with DuckDB and NumPy.

    python -m benchmarks.counting                                          five million words
    python -m benchmarks.counting --words 500000000 --forms ours           MS MARCO's size

Each form runs in its own process with one thread. Ours starts from word-pieces, as the rule does,
and writes the counts; the peers start from ready word numbers and only count. DuckDB groups and
joins with a memory limit, NumPy sorts rows of word numbers. Fails unless every form has the same
counts. The text follows Zipf's law (`benchmarks.zipf`).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import forms, zipf
from cdmae.importance import ngrams
from cdmae.tokens.corpus import read_tokens
from cdmae.tokens.words import number_words

WINDOW = 4
FORMS = {
    "ours": "ours, from word-pieces",
    "duckdb": "DuckDB, groups and joins",
    "numpy": "NumPy, sorted rows",
}


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
        columns = []
        joins = []
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


def numpy(words: np.ndarray, room: np.ndarray, memory: int) -> np.ndarray:
    """Count by sorting the rows of word numbers as bytes."""
    del memory
    counts = np.zeros((WINDOW, len(words)), np.uint32)
    for order in range(1, WINDOW + 1):
        at = np.flatnonzero(room >= order)
        rows = np.ascontiguousarray(words[at[:, None] + np.arange(order)])
        keys = rows.view(np.dtype((np.void, rows.itemsize * order)))[:, 0]
        _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
        counts[order - 1, at] = times[which]
    return counts


PEERS = {"duckdb": duckdb, "numpy": numpy}


def start(form: str, given: argparse.Namespace) -> Callable[[], np.ndarray]:
    """Return a form's count, which returns the counts [order, word]."""
    tokens = read_tokens(Path(given.folder) / "tokens")
    if form == "ours":
        output = Path(given.folder) / "ngrams"

        def ours() -> np.ndarray:
            ngrams.count_to(output, tokens, window=WINDOW, memory=given.memory * 1_000_000)
            return np.load(output / "counts.npy", mmap_mode="r")

        return ours
    words, lengths = number_words(tokens)
    ends = np.repeat(np.cumsum(lengths), lengths)
    room = np.minimum(ends - np.arange(len(words)), WINDOW).astype(np.uint8)
    return lambda: PEERS[form](words, room, given.memory)


def main() -> None:
    """Measure every form, and print the table."""
    parser = forms.parser(__doc__, rounds=3, words=5_000_000, memory=4000)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--folder", type=Path, help="where there is room for what is made up")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as given.folder:
        tokens = Path(given.folder) / "tokens"
        words = zipf.write_tokens(tokens, max(1, round(given.words / zipf.WORDS)))
        chosen = {form: FORMS[form] for form in ("ours", *given.forms)}
        work = f"{words / 1e6:.1f} M words, n-grams of 1 to {WINDOW} words"
        forms.compare(start, chosen, given, "counting n-grams", work=work, tolerance=0.0)


if __name__ == "__main__":
    main()
