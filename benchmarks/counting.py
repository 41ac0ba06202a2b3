"""Compare counting n-grams and scoring words with DuckDB and Python's Counter.

    python -m benchmarks.counting                                  two million words
    python -m benchmarks.counting --words 50e6 --collection results/collections/msmarco --threads 16

Every form runs in its own process and starts from the same word numbers. DuckDB only counts: it
groups ready-made columns of numbers, one column per position in the n-gram. Counter counts tuples
of numbers and looks them up again at every position, the minimum that importance needs. The last
form starts from word-pieces instead.

Targets: twice as fast as DuckDB, thirty times as fast as Counter, bit-equal counts, at most 45
bytes a word, both cores used. Check the last target by wall time on an idle machine: on a busy
machine Linux runs two threads on one core.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks import texts
from benchmarks.tables import table
from cdmae.describe import describe
from cdmae.importance import ami, ngrams
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens, read_tokens, write_tokens

WINDOW = 4
FORMS = {
    "counter": "Counter, with look-ups",
    "duckdb": "DuckDB GROUP BY, counts only",
    "counts": "ours, counts only",
    "ours": "ours, counts and importance",
    "threads": "ours, on all threads",
    "pieces": "ours, from word-pieces",
}


def prepare(folder: Path, words: int, collection: Path | None) -> None:
    """Write tokens of about the given number of words."""
    passages = texts.passages(int(words * 6.5), collection)
    tokenise.train_tokenizer(passages["text"].to_pylist()[:4000], 8192).save_pretrained(
        folder / "tokenizer"
    )
    write_tokens(folder / "tokens", tokenise.tokenise(passages, folder / "tokenizer", 2))


def numbered(read: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each word, and the words from it to the end of its segment."""
    words, segments, _ = ngrams.words_of(read, "word")
    return words, np.repeat(segments[1:], np.diff(segments)) - np.arange(len(words))


def measure(form: str, folder: Path, threads: int) -> dict[str, float]:
    """Return CPU time, wall time, words, bytes of memory, and a checksum of the counts."""
    read = read_tokens(folder / "tokens")
    read = Tokens(np.array(read.ids), read.starts, read.text_starts, read.word_starts)
    few = slice(0, 50)
    first = Tokens(read.ids, read.starts[:51], read.text_starts[few], read.word_starts)
    # compile the kernels, or read them from their cache
    one = ngrams.count(first)
    ami.ami(one.counts, one.totals)
    words, left = numbered(read)
    work = {"counter": _counter, "duckdb": _duckdb}.get(form)
    if work:
        given = (words, left)
    else:
        given = (read if form == "pieces" else _as_pieces(words, left), form, threads)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = []
    for _ in range(1 if form == "counter" else 3):
        cpu = time.process_time()
        wall = time.perf_counter()
        squares = (work or _ours)(*given)
        taken.append((time.process_time() - cpu, time.perf_counter() - wall))
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    cpu, wall = (min(each) for each in zip(*taken, strict=True))
    return {"cpu": cpu, "wall": wall, "words": len(words), "memory": memory, "squares": squares}


def _as_pieces(words: np.ndarray, left: np.ndarray) -> Tokens:
    """Return tokens with one word-piece per word: words then need no numbering."""
    starts = np.append(np.flatnonzero(np.append(True, left[:-1] == 1)), len(words))
    return Tokens(words, starts, starts[:-1], np.ones(int(words.max()) + 1, bool))


def _ours(read: Tokens, form: str, threads: int) -> int:
    threads = threads if form == "threads" else 1
    unit = "word" if form == "pieces" else "wordpiece"
    counted = ngrams.count(read, unit=unit, window=WINDOW, threads=threads)
    if form != "counts":
        ami.ami(counted.counts, counted.totals, threads=threads)
    return int(counted.counts.sum(dtype=np.int64))


def _counter(words: np.ndarray, left: np.ndarray) -> int:
    numbers = words.tolist()
    inside = left.tolist()
    total = 0
    for order in range(1, WINDOW + 1):
        grams = [
            tuple(numbers[at : at + order]) if inside[at] >= order else None
            for at in range(len(numbers))
        ]
        counts = Counter(grams)
        counts[None] = 0
        total += sum([counts[gram] for gram in grams])
    return total


def _duckdb(words: np.ndarray, left: np.ndarray) -> int:
    import duckdb
    import pyarrow as pa

    columns = {f"w{n}": np.append(words[n:], np.zeros(n, np.uint32)) for n in range(WINDOW)}
    given = pa.table({**columns, "words": np.minimum(left, WINDOW).astype(np.uint8)})
    connection = duckdb.connect()
    connection.register("given", given)
    connection.execute("SET threads = 1")
    total = 0
    for order in range(1, WINDOW + 1):
        group = ", ".join(f"w{n}" for n in range(order))
        counts = f"SELECT {group}, count(*) AS c FROM given WHERE words >= {order} GROUP BY {group}"
        total += connection.execute(f"SELECT sum(c * c) FROM ({counts})").fetchone()[0]
    return int(total)


def main() -> None:
    """Measure every form and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=float, default=2e6)
    parser.add_argument(
        "--collection", type=Path, help="a folder of results/collections, instead of documentation"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--form", choices=FORMS, help="internal: measure this form only and print JSON"
    )
    parser.add_argument("--folder", type=Path, help="internal: where its tokens are")
    arguments = parser.parse_args()
    if arguments.form:
        print(json.dumps(measure(arguments.form, arguments.folder, arguments.threads)))
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), int(arguments.words), arguments.collection)
        found = {}
        for form in FORMS:
            command = [
                sys.executable,
                "-m",
                "benchmarks.counting",
                f"--threads={arguments.threads}",
            ]
            command += ["--form", form, "--folder", folder]
            found[form] = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            )
    words = found["ours"]["words"]
    where = describe()["processor"]
    print(
        f"{words:,} words, n-grams of 1 to {WINDOW} words; "
        f"all threads are {arguments.threads}, on {where}\n"
    )
    rows = []
    speed = {form: each["words"] / each["cpu"] for form, each in found.items()}
    for form, each in found.items():
        rows.append(
            {
                "form": FORMS[form],
                "million words per cpu-s": f"{speed[form] / 1e6:.2f}",
                "of DuckDB": f"{speed[form] / speed['duckdb']:.1f} x",
                "of Counter": f"{speed[form] / speed['counter']:.0f} x",
                "seconds": f"{each['wall']:.2f}",
                "bytes per word": f"{each['memory'] / each['words']:.0f}",
            }
        )
    print(table(rows))
    equal = {each["squares"] for each in found.values()}
    print(f"\nall counts agree: {'yes' if len(equal) == 1 else 'NO'}")


if __name__ == "__main__":
    main()
