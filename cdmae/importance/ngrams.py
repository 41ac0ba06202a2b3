"""n-grams of one collection: how often each occurs, at every position of the text and as a table for new text.

Counts are exact: nothing is pruned. An n-gram lies within one passage, and within its title or its text.

W words, P passages, L the longest n-gram (the window), V words in the vocabulary.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.arrays import read_array, write_array
from cdmae.compiled import Threads
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.importance import counting
from cdmae.importance import table as ngram_table
from cdmae.importance.table import Table
from cdmae.tokens.corpus import Tokens

PARTITION = 1 << 14  # keys a partition should hold: its table then fits a core's second-level cache
PARTITIONS = 1 << 12  # partitions at most: each is written and read in turns, a cache line of it at a time
GROUP = 64  # partitions counted at a time
ENTRY = 8  # bytes of a key
MOST_WORDS = (1 << 32) - 1  # their numbers are uint32
UNITS = ("word", "wordpiece")

Repeated = tuple[np.ndarray, np.ndarray]  # keys and counts of n-grams that occur at least twice


@dataclass(frozen=True)
class Counts:
    """The n-gram counts of a collection, orders 1 to L.

    counts uint32 [L, W]: ``counts[n - 1, i]`` occurrences of the n-gram that begins at word i, 0 where it would leave
    its segment; segments int64 [2 P + 1]: where each title and each text begins, in words; totals int64 [L]: the number
    of n-grams of each order; table: the same counts by n-gram.
    """

    counts: np.ndarray
    segments: np.ndarray
    totals: np.ndarray
    table: Table

    @classmethod
    def read(cls, folder: Path | str) -> Counts:
        """Read what `count_to` wrote; the counts stay on disk."""
        folder = Path(folder)
        table = ngram_table.read(folder)
        segments = np.array(read_array(folder / "segments.npy"))
        return cls(read_array(folder / "counts.npy"), segments, table.totals, table)


def count_to(folder: Path | str, tokens: Tokens, *, unit: str, window: int, threads: int, memory: int) -> None:
    """Count as `count` does, straight into a file of the folder, and write the rest beside it."""
    with complete(folder) as aside:
        aside.mkdir()

        def allocate(shape: tuple[int, int], dtype: type) -> np.ndarray:
            array = np.lib.format.open_memmap(aside / "counts.npy", "w+", dtype, shape)
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now, and would be a crash (SIGBUS) later
                with open(aside / "counts.npy", "r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
            return array

        counts = count(tokens, unit=unit, window=window, threads=threads, memory=memory, allocate=allocate)
        write_array(aside / "segments.npy", counts.segments)
        ngram_table.write(aside, counts.table)


def count(
    tokens: Tokens,
    *,
    unit: str = "word",
    window: int = 4,
    threads: int = 1,
    memory: int | None = None,
    allocate: Callable[[tuple[int, int], type], np.ndarray] = np.empty,
) -> Counts:
    """Count the n-grams of orders 1 to `window` (L) at every position of `tokens`.

    memory: bytes for the keys of one order, 8 per n-gram; what does not fit is counted in several walks over the text,
    one range of the keys' hashes at a time. `allocate` makes the array of the counts, in a file if they do not fit
    either. None of these, nor `threads`, changes a bit of the result.
    """
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}; allowed: {', '.join(UNITS)}")
    with Threads(threads) as pool:
        words, segments, word_keys = words_of(tokens, unit, pool)
        pieces = len(tokens.word_starts)
        left = np.empty(len(words), np.uint8)
        parts = shares(segments, pool.number)
        pool.run(lambda part: counting.room_left(segments, *part, window, left), parts)
        text = _Text(words, pieces + len(word_keys), left, pool, memory)
        counts = allocate((window, len(words)), np.uint32)
        occurrences = _occurrences(text, counts[0])
        numbers, rows, repeated = words, None, []
        for order in range(2, window + 1):
            numbers, grams = text.count(order, numbers, counts[order - 2], counts[order - 1])
            rows = pool.submit(_canonical, grams, rows, text.vocabulary)  # beside the counting of the next order
            repeated.append(rows)
        tables = [future.result() for future in repeated]
    lengths = np.diff(segments)
    by_key = np.argsort(word_keys)
    table = Table(
        unit=unit,
        pieces=pieces,
        word_keys=word_keys[by_key],
        word_numbers=(pieces + by_key).astype(np.uint32),
        occurrences=occurrences,
        keys=tuple(keys for _, keys, _ in tables),
        counts=tuple(counts for _, _, counts in tables),
        totals=np.array([np.maximum(0, lengths - n + 1).sum() for n in range(1, window + 1)], np.int64),
    )
    return Counts(counts, segments, table.totals, table)


def segment_edges(tokens: Tokens) -> np.ndarray:
    """Return where the title and the text of each passage begin, in word-pieces: int64 [2 P + 1]."""
    return np.append(np.stack([tokens.starts[:-1], tokens.text_starts], axis=1).ravel(), tokens.starts[-1])


def shares(edges: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Ranges of segments with about equal numbers of words, one a thread; edges int64 [S + 1]."""
    goals = np.linspace(0, edges[-1], threads + 1)[1:-1]
    cuts = [0, *np.searchsorted(edges, goals).tolist(), len(edges) - 1]
    return list(zip(cuts[:-1], cuts[1:], strict=True))


# --- words -----------------------------------------------------------------------------------------------------------


def words_of(tokens: Tokens, unit: str, pool: Threads) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the words as numbers, uint32 [W], the segments in words, int64 [2 P + 1], and longer words' keys."""
    ids, pieces, edges = np.asarray(tokens.ids), len(tokens.word_starts), segment_edges(tokens)
    if unit == "wordpiece":
        _check_size(len(ids))
        return ids.astype(np.uint32), edges, np.empty(0, np.uint64)
    segments = np.zeros(len(edges), np.int64)
    parts = shares(edges, pool.number)
    pool.run(lambda part: counting.count_words(ids, edges, *part, tokens.word_starts, segments[1:]), parts)
    np.cumsum(segments, out=segments)
    _check_size(segments[-1])
    words = np.empty(segments[-1], np.uint32)

    def number(part: tuple[int, int]) -> np.ndarray:
        return counting.number_words(ids, edges, *part, tokens.word_starts, pieces, segments, words)

    keys, *others = pool.run(number, parts)
    for (first, last), more in zip(parts[1:], others, strict=True):
        keys, numbers = counting.merge_words(pieces, keys, more)
        counting.renumber(words[segments[first] : segments[last]], pieces, numbers)
    return words, segments, keys


def _check_size(words: int) -> None:
    if words > MOST_WORDS:
        raise InputError(f"the collection has {words} words; at most {MOST_WORDS} can be counted together")


def _occurrences(text: _Text, counts: np.ndarray) -> np.ndarray:
    """Occurrences of each word, uint32 [V], and at each position, written to `counts`."""
    parts = text.parts()
    by_part = np.zeros((len(parts), text.vocabulary), np.uint32)
    text.pool.run(lambda part, into: counting.count_numbers(text.words[part], into), parts, by_part)
    occurrences = by_part.sum(axis=0, dtype=np.uint32)
    text.pool.run(lambda part: counting.spread(text.words[part], occurrences, counts[part]), parts)
    return occurrences


# --- n-grams ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """The words of a collection by number, uint32 [W], and what they are counted with.

    left uint8 [W]: how many words there are from each to the end of its segment, at most the window.
    """

    words: np.ndarray
    vocabulary: int
    left: np.ndarray
    pool: Threads
    memory: int | None

    def parts(self) -> list[slice]:
        """Return a stretch of the text for each thread."""
        edges = np.linspace(0, len(self.words), self.pool.number + 1).astype(int).tolist()
        return [slice(begin, end) for begin, end in zip(edges[:-1], edges[1:], strict=True)]

    def count(
        self, order: int, numbers: np.ndarray, shorter: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, list[Repeated]]:
        """Fill the `counts` of one order from the `numbers` and the counts (`shorter`) of the order before.

        Returns the number of the n-gram at each position, uint32 [W], and the n-grams that are repeated.
        """
        bits = min(max(1, (len(self.words) // PARTITION).bit_length()), PARTITIONS.bit_length() - 1)
        shift = 64 - bits
        parts = self.parts()
        where = np.empty(len(self.words), np.uint16)
        sizes = np.zeros((len(parts), (1 << bits) + 2), np.int64)

        def partition(part: slice, size: np.ndarray) -> None:
            rest = slice(part.start, None)
            columns = (self.words[rest], self.vocabulary, numbers[rest], shorter[rest], self.left[rest])
            counting.partition(order, *columns, shift, where[part], size)

        self.pool.run(partition, parts, sizes)
        following, repeated = np.empty(len(self.words), np.uint32), []
        for low, high in _rounds(sizes[:, :-2].sum(axis=0), self.memory):
            known = sum(len(keys) for keys, _ in repeated)
            repeated += self._round(order, numbers, where, sizes, (low, high), shift, known, following, counts)
        return following, repeated

    def _round(
        self, order: int, numbers: np.ndarray, where: np.ndarray, sizes: np.ndarray, between: tuple[int, int],
        shift: int, known: int, following: np.ndarray, counts: np.ndarray,
    ) -> list[Repeated]:  # fmt: skip
        """Count the n-grams of the partitions `between` two; `known` repeated ones have a number already."""
        low, high = between
        begins, steps, ends = _layout(sizes, low, high)
        entries, bases = np.empty(ends.max() + np.uint64(1), np.uint64), np.zeros(sizes.shape[1], np.uint64)
        groups = range(0, high - low, GROUP)

        def scatter(part: slice, end: np.ndarray) -> None:
            rest = slice(part.start, None)
            counting.scatter(order, self.words[rest], self.vocabulary, numbers[rest], where[part], steps, end, entries)

        def collect(part: slice, end: np.ndarray) -> None:
            counting.collect(where[part], steps, end, entries, bases, following[part], counts[part])

        self.pool.run(scatter, self.parts(), ends.copy())
        repeated = self.pool.run(
            lambda at: counting.count_partitions(entries, begins[at : at + GROUP + 1], shift), groups
        )
        for at, (keys, _) in zip(groups, repeated, strict=True):
            bases[low + at : min(high, low + at + GROUP)] = known
            known += len(keys)
        self.pool.run(collect, self.parts(), ends)
        return repeated


def _layout(sizes: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where each partition of a round begins, [high - low + 1]; the steps; where the threads' parts of it begin.

    Each thread's two entries for what is not counted come last.
    """
    begins = np.append(0, np.cumsum(sizes[:, low:high].sum(axis=0)))
    steps = np.full(sizes.shape[1], -1)
    steps[low:high], steps[-2:] = 1, 0
    ends = np.zeros(sizes.shape, np.uint64)
    ends[:, low:high] = begins[:-1] + np.cumsum(sizes[:, low:high], axis=0) - sizes[:, low:high]
    ends[:, -2:] = begins[-1] + np.arange(2 * len(sizes)).reshape(-1, 2)
    return begins, steps, ends


def _rounds(sizes: np.ndarray, memory: int | None) -> list[tuple[int, int]]:
    """Ranges of partitions whose keys fit into `memory` bytes; a single partition always goes."""
    if memory is None:
        return [(0, len(sizes))]
    rounds, low, taken = [], 0, 0
    for index, size in enumerate((sizes * ENTRY).tolist()):
        if index > low and taken + size > memory:
            rounds.append((low, index))
            low, taken = index, 0
        taken += size
    return [*rounds, (low, len(sizes))]


def _canonical(
    repeated: list[Repeated], before: Future | None, vocabulary: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Replace the numbers of prefixes in the keys by their rows in the table of the order `before`, and sort.

    Returns the row of each number, the sorted keys, and their counts: the same whatever the numbers were.
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
