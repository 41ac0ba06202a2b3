"""Count the n-grams of a collection at each position, and make a table for new text.

Counts are exact: nothing is pruned. An n-gram is within one passage, and within its title or its
text.

W words, P passages, L the longest n-gram (the window), V words in the vocabulary.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from cdmae.arrays import read_array, seal, write_array
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.importance import MOST_WORDS, counting
from cdmae.importance import table as ngram_table
from cdmae.importance.table import Table
from cdmae.threads import Threads
from cdmae.tokens.corpus import Tokens

PARTITION = 1 << 14  # keys of a partition: its hash table then fits a core's second-level cache
# the most partitions: each is written and read in turn, one cache line at a time
PARTITIONS = 1 << 12
GROUP = 64  # partitions counted together
UNITS = ("word", "wordpiece")

Repeated = tuple[np.ndarray, np.ndarray]  # keys and counts of n-grams that occur at least twice


@dataclass(frozen=True)
class Counts:
    """The n-gram counts of a collection, orders 1 to L.

    counts uint32 [L, W]: ``counts[n - 1, i]`` is the number of occurrences of the n-gram that
    begins at word i, 0 where the n-gram would leave its segment. segments int64 [2 P + 1]: the
    offset of each title and each text, in words. totals int64 [L]: the number of n-grams of each
    order. table: the same counts by n-gram.
    """

    counts: np.ndarray
    segments: np.ndarray
    totals: np.ndarray
    table: Table

    @classmethod
    def read(cls, folder: Path | str) -> Counts:
        """Read the folder that `count_to` wrote; the counts stay on disk."""
        folder = Path(folder)
        table = ngram_table.read(folder)
        segments = read_array(folder / "segments.npy")
        return cls(read_array(folder / "counts.npy"), segments, table.totals, table)


def count_to(
    folder: Path | str, tokens: Tokens, *, unit: str, window: int, threads: int = 1
) -> None:
    """Count n-grams as `count` does, and write the counts to a folder.

    The counts by position are computed in a memory-mapped file of the folder.
    """
    with complete(folder) as aside:
        aside.mkdir()
        path = aside / "counts.npy"
        allocate = partial(reserve, path)
        counts = count(tokens, unit=unit, window=window, threads=threads, allocate=allocate)
        seal(path)
        write_array(aside / "segments.npy", counts.segments)
        ngram_table.write(aside, counts.table)


def reserve(path: Path, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Create a memory-mapped array in a file, and reserve its disk space."""
    array = np.lib.format.open_memmap(path, "w+", dtype, shape)
    # Without this reservation, a full disk would crash the process later (SIGBUS).
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
    return array


def count(
    tokens: Tokens,
    *,
    unit: str = "word",
    window: int = 4,
    threads: int = 1,
    allocate: Callable[[tuple[int, int], type], np.ndarray] = np.empty,
) -> Counts:
    """Count the n-grams of orders 1 to `window` (L) at every position of `tokens`.

    `allocate` makes the array of the counts, in a file if they do not fit into memory. Neither
    `allocate` nor `threads` changes the result.
    """
    check_unit(unit)
    words, segments, word_keys = words_of(tokens, unit, threads)
    pieces = len(tokens.word_starts)
    with Threads(threads) as pool:
        left = np.empty(len(words), np.uint8)
        parts = shares(segments, pool.number)
        pool.run(lambda part: counting.room_left(segments, *part, window, left), parts)
        text = _Text(words, pieces + len(word_keys), left, pool)
        counts = allocate((window, len(words)), np.uint32)
        occurrences = _occurrences(text, counts[0])
        numbers = words
        rows = None
        sorted_tables = []
        for order in range(2, window + 1):
            numbers, repeated = text.count(order, numbers, counts[order - 2], counts[order - 1])
            # sorted while the next order is counted
            rows = pool.submit(_canonical, repeated, rows, text.vocabulary)
            sorted_tables.append(rows)
        tables = [future.result() for future in sorted_tables]
    keys, numbers_by_key = sorted_words(word_keys, pieces)
    table = Table(
        unit=unit,
        pieces=pieces,
        word_keys=keys,
        word_numbers=numbers_by_key,
        occurrences=occurrences,
        keys=tuple(keys for _, keys, _ in tables),
        counts=tuple(counts for _, _, counts in tables),
        totals=totals_of(segments, window),
    )
    return Counts(counts, segments, table.totals, table)


def check_unit(unit: str) -> None:
    """Raise `InputError` for an unknown unit."""
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}; allowed: {', '.join(UNITS)}")


def sorted_words(word_keys: np.ndarray, pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort the keys of long words, given in the order of their numbers; return keys and numbers."""
    by_key = np.argsort(word_keys)
    return word_keys[by_key], (pieces + by_key).astype(np.uint32)


def totals_of(segments: np.ndarray, window: int) -> np.ndarray:
    """Return the number of n-grams of each order, int64 [L]; segments: offsets in words."""
    lengths = np.diff(segments)
    orders = range(1, window + 1)
    return np.array([np.maximum(0, lengths - n + 1).sum() for n in orders], np.int64)


def shares(edges: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Divide segments into ranges of about equal size, one per thread; edges int64 [S + 1]."""
    goals = np.linspace(0, edges[-1], threads + 1)[1:-1]
    return list(pairwise([0, *np.searchsorted(edges, goals).tolist(), len(edges) - 1]))


# --- words ----------------------------------------------------------------------------------------


def words_of(
    tokens: Tokens, unit: str, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the words' numbers, uint32 [W], and their segments, int64 [2 P + 1].

    The third array holds the keys of the words of several word-pieces, by number.
    """
    ids = np.asarray(tokens.ids)
    pieces = len(tokens.word_starts)
    edges = tokens.edges
    if unit == "wordpiece":
        _check_number(len(ids), pieces)
        return ids.astype(np.uint32), edges, np.empty(0, np.uint64)
    segments = np.zeros(len(edges), np.int64)
    with Threads(threads) as pool:
        parts = shares(edges, pool.number)

        def measure(part: tuple[int, int]) -> None:
            counting.count_words(ids, edges, *part, tokens.word_starts, segments[1:])

        pool.run(measure, parts)
        np.cumsum(segments, out=segments)
        _check_number(int(segments[-1]), pieces)
        words = np.empty(segments[-1], np.uint32)

        def number(part: tuple[int, int]) -> np.ndarray:
            return counting.number_words(
                ids, edges, *part, tokens.word_starts, pieces, segments, words
            )

        keys = pool.run(number, parts)
    merged = LongWords(pieces)
    for (first, last), own in zip(parts, keys, strict=True):
        numbers = merged.add(own)
        counting.renumber(words[segments[first] : segments[last]], pieces, numbers)
    return words, segments, merged.keys


class LongWords:
    """Number words of several word-pieces in several texts, in the order of the texts."""

    def __init__(self, pieces: int) -> None:
        """Start without words; the first word will have the number `pieces`."""
        self._pieces = pieces
        self._slots, self._keys = counting.no_words()
        self._used = 0

    @property
    def keys(self) -> np.ndarray:
        """Return the keys of all words, in the order of their numbers, uint64."""
        return self._keys[: self._used]

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Add a text's words and return their numbers, uint32; keys may refer to earlier keys."""
        self._slots, self._keys, self._used, numbers = counting.merge_words(
            self._pieces, self._slots, self._keys, self._used, keys
        )
        return numbers


def _check_number(words: int, pieces: int) -> None:
    """Raise `InputError` if there are too many words for uint32 numbers."""
    most = MOST_WORDS - pieces
    if words > most:
        raise InputError(
            f"the collection has {words:,} words; at most {most:,} can be counted: pre-train on a "
            "smaller collection"
        )


def _occurrences(text: _Text, counts: np.ndarray) -> np.ndarray:
    """Return each word's occurrences, uint32 [V], and write them by position to `counts`."""
    parts = text.parts()
    by_part = np.zeros((len(parts), text.vocabulary), np.uint32)
    text.pool.run(lambda part, into: counting.count_numbers(text.words[part], into), parts, by_part)
    occurrences = by_part.sum(axis=0, dtype=np.uint32)
    text.pool.run(lambda part: counting.spread(text.words[part], occurrences, counts[part]), parts)
    return occurrences


# --- n-grams --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """The words of a collection by number, uint32 [W], and the tools to count them.

    left uint8 [W]: the number of words from each to the end of its segment, at most the window.
    """

    words: np.ndarray
    vocabulary: int
    left: np.ndarray
    pool: Threads

    def parts(self) -> list[slice]:
        """Divide the text into one slice per thread."""
        edges = np.linspace(0, len(self.words), self.pool.number + 1).astype(int).tolist()
        return [slice(*edge) for edge in pairwise(edges)]

    def count(
        self, order: int, numbers: np.ndarray, shorter: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, list[Repeated]]:
        """Fill the `counts` of one order; `numbers` and `shorter` (counts) are of the order below.

        Returns the number of the n-gram at each position, uint32 [W], and the repeated n-grams.
        """
        bits = min(max(1, (len(self.words) // PARTITION).bit_length()), PARTITIONS.bit_length() - 1)
        partitions = 1 << bits
        shift = 64 - bits
        where = np.empty(len(self.words), np.uint16)
        sizes = self._partition(order, numbers, shorter, shift, where)
        begins = np.append(0, np.cumsum(sizes[:, :-2].sum(axis=0)))
        ends = _ends(sizes, begins)
        entries = self._scatter(order, numbers, where, ends, size=begins[-1] + 2 * len(sizes))
        groups = [begins[first : first + GROUP + 1] for first in range(0, partitions, GROUP)]
        repeated = self.pool.run(
            lambda group: counting.count_partitions(entries, group, shift), groups
        )
        numbered = np.cumsum([0, *(len(keys) for keys, _ in repeated)])
        bases = np.append(np.repeat(numbered[:-1], GROUP)[:partitions], [0, 0]).astype(np.uint64)
        following = np.empty(len(self.words), np.uint32)

        def collect(part: slice, end: np.ndarray) -> None:
            counting.collect(where[part], end, entries, bases, following[part], counts[part])

        self.pool.run(collect, self.parts(), ends)
        return following, repeated

    def _partition(
        self, order: int, numbers: np.ndarray, shorter: np.ndarray, shift: int, where: np.ndarray
    ) -> np.ndarray:
        """Write each n-gram's partition to `where`; return their sizes by thread and partition."""
        parts = self.parts()
        sizes = np.zeros((len(parts), (1 << 64 - shift) + 2), np.int64)

        def partition(part: slice, size: np.ndarray) -> None:
            rest = slice(part.start, None)
            counting.partition(
                order,
                self.words[rest],
                self.vocabulary,
                numbers[rest],
                shorter[rest],
                self.left[rest],
                shift,
                where[part],
                size,
            )

        self.pool.run(partition, parts, sizes)
        return sizes

    def _scatter(
        self, order: int, numbers: np.ndarray, where: np.ndarray, ends: np.ndarray, size: int
    ) -> np.ndarray:
        """Return the keys by partition, uint64 [size]."""
        entries = np.empty(size, np.uint64)

        def scatter(part: slice, end: np.ndarray) -> None:
            rest = slice(part.start, None)
            counting.scatter(
                order, self.words[rest], self.vocabulary, numbers[rest], where[part], end, entries
            )

        self.pool.run(scatter, self.parts(), ends.copy())
        return entries


def _ends(sizes: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Return the index of each thread's first entry of each partition, uint64 like `sizes`.

    Each thread's two entries for n-grams that are not counted come last.
    """
    ends = np.empty(sizes.shape, np.uint64)
    ends[:, :-2] = begins[:-1] + np.cumsum(sizes[:, :-2], axis=0) - sizes[:, :-2]
    ends[:, -2:] = begins[-1] + np.arange(2 * len(sizes)).reshape(-1, 2)
    return ends


def _canonical(
    repeated: list[Repeated], before: Future | None, vocabulary: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Replace prefixes' numbers in the keys by their rows in the table `before`, and sort.

    Returns the row of each number, the sorted keys, and their counts. The last two do not depend on
    the numbers.
    """
    keys = np.concatenate([np.empty(0, np.uint64), *(part for part, _ in repeated)])
    counts = np.concatenate([np.empty(0, np.uint32), *(part for _, part in repeated)])
    if before is not None:
        prefixes, last = np.divmod(keys, np.uint64(vocabulary))
        keys = before.result()[0][prefixes] * np.uint64(vocabulary) + last
    by_key = np.argsort(keys)
    rows = np.empty(len(by_key), np.uint64)
    rows[by_key] = np.arange(len(by_key), dtype=np.uint64)
    return rows, keys[by_key], counts[by_key]
