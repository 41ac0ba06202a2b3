"""n-grams of one collection: how often each occurs, at every position of the text and as a table for new text.

Counts are exact: nothing is pruned. An n-gram lies within one passage, and within its title or its text. The table
keeps the n-grams that occur at least twice; any other one of the collection occurs once.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae import counting, files
from cdmae.errors import InputError

PARTITION = 1 << 15  # keys a partition should hold: its table then fits a core's second-level cache
PARTITIONS = 1 << 12  # partitions at most: each is written and read in turns, a cache line of it at a time
GROUP = 64  # partitions counted at a time
ENTRY = 8  # bytes of a key
UNITS = ("word", "wordpiece")


@dataclass(frozen=True)
class Table:
    """The n-grams that occur at least twice, for looking up new text.

    unit: `word` or `wordpiece`; pieces: the number of word-pieces; word_keys uint64, word_numbers uint32: the words of
    several pieces, ``number of the word without its last piece x pieces + last piece``, sorted, and their numbers;
    occurrences uint32 [V]: per number of a word; keys: per order from 2, ``row of the first n-1 words among the keys
    of the order before (for 2: the word) x V + number of the last word``, sorted; counts: per order from 2.
    """

    unit: str
    pieces: int
    word_keys: np.ndarray
    word_numbers: np.ndarray
    occurrences: np.ndarray
    keys: tuple[np.ndarray, ...]
    counts: tuple[np.ndarray, ...]
    totals: np.ndarray

    @property
    def window(self) -> int:
        """The highest order L."""
        return len(self.keys) + 1

    def words(self, ids: np.ndarray, word_starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words of one segment's word-pieces `ids`: their numbers, -1 for unknown, and where each begins."""
        ids = np.asarray(ids, dtype=np.int64)
        begins = np.ones(len(ids), bool) if self.unit == "wordpiece" else np.asarray(word_starts)[ids]
        begins[:1] = True
        starts = np.flatnonzero(begins)
        numbers = ids[starts].copy()
        lengths = np.diff(np.append(starts, len(ids)))
        for depth in range(1, lengths.max(initial=1)):
            longer = np.flatnonzero((lengths > depth) & (numbers >= 0))
            keys = numbers[longer].astype(np.uint64) * np.uint64(self.pieces) + ids[starts[longer] + depth].astype(
                np.uint64
            )
            rows = _find(self.word_keys, keys)
            numbers[longer] = -1
            numbers[longer[rows >= 0]] = self.word_numbers[rows[rows >= 0]]
        return numbers, starts

    def look_up(self, words: np.ndarray) -> np.ndarray:
        """The counts of the n-grams that begin at each of the `words` of one segment: int64 [L, W].

        An n-gram that the table does not hold has a count of 1, the count it must have had; 0 where the n-gram would
        leave the segment.
        """
        words = np.asarray(words, dtype=np.int64)
        counts = np.zeros((self.window, len(words)), np.int64)
        counts[0] = np.maximum(1, np.where(words < 0, 1, self.occurrences[words]))
        rows = np.where(counts[0] > 1, words, -1)
        for order in range(2, self.window + 1):
            inside = max(0, len(words) - order + 1)
            prefix, last = rows[:inside], words[order - 1 : order - 1 + inside]
            known = np.flatnonzero((prefix >= 0) & (last >= 0))
            keys = prefix[known].astype(np.uint64) * np.uint64(len(self.occurrences)) + last[known].astype(np.uint64)
            rows = np.full(inside, -1)
            rows[known] = _find(self.keys[order - 2], keys)
            counts[order - 1, :inside] = 1
            found = rows >= 0
            counts[order - 1, :inside][found] = self.counts[order - 2][rows[found]]
        return counts


def _find(table: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The rows of `keys` in the sorted `table`, -1 where there is none."""
    if not len(table):
        return np.full(len(keys), -1)
    rows = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[rows] == keys, rows, -1)


@dataclass(frozen=True)
class Counts:
    """The n-gram counts of a collection with W words, orders 1 to L.

    counts uint32 [L, W]: ``counts[n - 1, i]`` occurrences of the n-gram that begins at word i, 0 where it would leave
    its segment; segments int64 [2 P + 1]: where each title and each text begins, in words; totals int64 [L]: the number
    of n-grams of each order; table: the same counts by n-gram.
    """

    counts: np.ndarray
    segments: np.ndarray
    totals: np.ndarray
    table: Table

    def write(self, folder: Path | str) -> None:
        """Write everything as a folder."""
        with files.complete(folder) as aside:
            aside.mkdir()
            np.save(aside / "counts.npy", self.counts)
            np.save(aside / "segments.npy", self.segments)
            write_table(aside, self.table)

    @classmethod
    def read(cls, folder: Path | str) -> Counts:
        """Read what `write` wrote; the counts stay on disk."""
        folder = Path(folder)
        table = read_table(folder)
        return cls(files.read_array(folder / "counts.npy"), np.load(folder / "segments.npy"), table.totals, table)


def write_table(folder: Path, table: Table) -> None:
    """Write `table` into the existing `folder`."""
    np.savez(
        folder / "table.npz",
        unit=np.array(table.unit),
        pieces=np.array(table.pieces),
        word_keys=table.word_keys,
        word_numbers=table.word_numbers,
        occurrences=table.occurrences,
        totals=table.totals,
        **{f"keys_{order}": keys for order, keys in enumerate(table.keys, 2)},
        **{f"counts_{order}": counts for order, counts in enumerate(table.counts, 2)},
    )


def read_table(folder: Path | str) -> Table:
    """Read what `write_table` wrote."""
    path = Path(folder) / "table.npz"
    try:
        with np.load(path) as arrays:
            orders = range(2, len(arrays["totals"]) + 1)
            return Table(
                unit=str(arrays["unit"]),
                pieces=int(arrays["pieces"]),
                word_keys=arrays["word_keys"],
                word_numbers=arrays["word_numbers"],
                occurrences=arrays["occurrences"],
                keys=tuple(arrays[f"keys_{order}"] for order in orders),
                counts=tuple(arrays[f"counts_{order}"] for order in orders),
                totals=arrays["totals"],
            )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a table of n-grams ({error}); delete {folder} and run again") from None


def count(
    tokens: files.Tokens,
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
    threads = max(1, threads)
    with ThreadPoolExecutor(threads) as pool:
        words, segments, word_keys = _words(tokens, unit, pool, threads)
        pieces = len(tokens.word_starts)
        vocabulary = pieces + len(word_keys)
        counts = allocate((window, len(words)), np.uint32)
        occurrences = _occurrences(words, vocabulary, pool, threads)
        counting.spread(words, occurrences, counts[0])
        totals, numbers, rows, repeated = [len(words)], words, None, []
        for order in range(2, window + 1):
            level = _Level(order, segments, words, vocabulary, numbers, counts[order - 2], counts[order - 1])
            total, numbers, kept = level.count(pool, threads, memory)
            rows = pool.submit(_canonical, kept, rows, vocabulary)  # beside the counting of the next order
            totals.append(total)
            repeated.append(rows)
        found = [each.result() for each in repeated]
    by_key = np.argsort(word_keys)
    table = Table(
        unit=unit,
        pieces=pieces,
        word_keys=word_keys[by_key],
        word_numbers=(pieces + by_key).astype(np.uint32),
        occurrences=occurrences,
        keys=tuple(keys for _, keys, _ in found),
        counts=tuple(counts for _, _, counts in found),
        totals=np.array(totals, np.int64),
    )
    return Counts(counts, segments, table.totals, table)


def _words(
    tokens: files.Tokens, unit: str, pool: ThreadPoolExecutor, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The words as numbers uint32 [W], the segments in words int64 [2 P + 1], the keys of words of several pieces."""
    ids, pieces, edges = np.asarray(tokens.ids), len(tokens.word_starts), segment_edges(tokens)
    if unit == "wordpiece":
        _fits(len(ids))
        return ids.astype(np.uint32), edges, np.empty(0, np.uint64)
    segments = np.zeros(len(edges), np.int64)
    parts = shares(edges, threads)
    list(pool.map(lambda part: counting.count_words(ids, edges, *part, tokens.word_starts, segments[1:]), parts))
    np.cumsum(segments, out=segments)
    _fits(segments[-1])
    words = np.empty(segments[-1], np.uint32)

    def number(part: tuple[int, int]) -> np.ndarray:
        return counting.number_words(ids, edges, *part, tokens.word_starts, pieces, segments, words)

    keys, *others = pool.map(number, parts)
    for (first, last), more in zip(parts[1:], others, strict=True):
        keys, numbers = counting.merge_words(pieces, keys, more)
        counting.renumber(words[segments[first] : segments[last]], pieces, numbers)
    return words, segments, keys


def _occurrences(words: np.ndarray, vocabulary: int, pool: ThreadPoolExecutor, threads: int) -> np.ndarray:
    edges = np.linspace(0, len(words), threads + 1).astype(np.int64)
    found = np.zeros((threads, vocabulary), np.uint32)
    list(pool.map(counting.count_numbers, [words] * threads, edges[:-1], edges[1:], found))
    return found.sum(axis=0, dtype=np.uint32)


def _fits(words: int) -> None:
    if words >= 1 << 32:
        raise InputError(f"the collection has {words} words; at most {(1 << 32) - 1} can be counted together")


def segment_edges(tokens: files.Tokens) -> np.ndarray:
    """Where the title and the text of each passage begin, in word-pieces: int64 [2 P + 1]."""
    return np.append(np.stack([tokens.starts[:-1], tokens.text_starts], axis=1).ravel(), tokens.starts[-1])


@dataclass(frozen=True)
class _Level:
    """One order of n-grams, and what the order before it found."""

    order: int
    segments: np.ndarray
    words: np.ndarray
    vocabulary: int
    numbers: np.ndarray
    shorter: np.ndarray
    counts: np.ndarray

    def count(
        self, pool: ThreadPoolExecutor, threads: int, memory: int | None
    ) -> tuple[int, np.ndarray, list[tuple[int, np.ndarray, np.ndarray]]]:
        """Fill `counts`; return the total, the numbers per position, and (base, keys, counts) of what is repeated."""
        bits = min(max(1, (len(self.words) // PARTITION).bit_length()), PARTITIONS.bit_length() - 1)
        shift = 64 - bits
        parts = shares(self.segments, threads)
        where = np.empty(len(self.words), np.uint16)
        sizes = np.zeros((len(parts), (1 << bits) + 1), np.int64)
        known = (self.words, self.vocabulary, self.numbers)

        def partition(part: int) -> int:
            edges = (self.order, self.segments, *parts[part])
            return counting.partition(*edges, *known, self.shorter, shift, where, self.counts, sizes[part])

        total = sum(pool.map(partition, range(len(parts))))
        ranges = [(self.segments[first], self.segments[last]) for first, last in parts]
        numbers, kept = np.empty(len(self.words), np.uint32), []
        of_partition = sizes[:, :-1].sum(axis=0)
        bases = np.concatenate([[0], np.cumsum(of_partition // 2)])  # what occurs twice is at most half of them
        for low, high in _rounds(of_partition, memory):
            begins = np.concatenate([[0], np.cumsum(of_partition[low:high])])
            entries = np.empty(begins[-1] + len(parts), np.uint64)
            ends = np.zeros_like(sizes)
            ends[:, low:high] = begins[:-1] + np.cumsum(sizes[:, low:high], axis=0) - sizes[:, low:high]
            ends[:, -1] = begins[-1] + np.arange(len(parts))
            given = [(low, high, each.copy(), entries) for each in ends]
            keys = [(self.order, *each, *known, where, *more) for each, more in zip(ranges, given, strict=True)]
            list(pool.map(lambda each: counting.scatter(*each), keys))
            kept += _count_partitions(pool, entries, begins, shift, bases[low:high])
            given = [(where, low, high, each, entries, numbers, self.counts) for each in ends]
            list(pool.map(lambda each, more: counting.collect(*each, *more), ranges, given))
        return total, numbers, kept


def _count_partitions(
    pool: ThreadPoolExecutor, entries: np.ndarray, begins: np.ndarray, shift: int, bases: np.ndarray
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    groups = range(0, len(bases), GROUP)
    found = pool.map(
        lambda at: counting.count_partitions(entries, begins[at : at + GROUP + 1], shift, int(bases[at])), groups
    )
    return [(int(bases[at]), *each) for at, each in zip(groups, found, strict=True)]


def shares(edges: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Ranges of segments with about equal numbers of words, one a thread; edges int64 [S + 1]."""
    goals = np.linspace(0, edges[-1], threads + 1)[1:-1]
    cuts = [0, *np.searchsorted(edges, goals).tolist(), len(edges) - 1]
    return list(zip(cuts[:-1], cuts[1:], strict=True))


def _rounds(sizes: np.ndarray, memory: int | None) -> list[tuple[int, int]]:
    """Ranges of partitions whose keys fit into `memory` bytes; a single partition always goes."""
    if memory is None:
        return [(0, len(sizes))]
    rounds, low, held = [], 0, 0
    for index, size in enumerate((sizes * ENTRY).tolist()):
        if index > low and held + size > memory:
            rounds.append((low, index))
            low, held = index, 0
        held += size
    return [*rounds, (low, len(sizes))]


def _canonical(
    kept: list[tuple[int, np.ndarray, np.ndarray]], before: Future | None, vocabulary: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Replace the numbers of prefixes in the keys by their rows in the table of the order `before`, and sort.

    Returns the row of each number, the sorted keys, and their counts: the same whatever the numbers were.
    """
    keys = np.concatenate([np.empty(0, np.uint64), *(each for _, each, _ in kept)])
    counts = np.concatenate([np.empty(0, np.uint32), *(each for _, _, each in kept)])
    numbers = np.concatenate([np.empty(0, np.int64), *(base + np.arange(len(each)) for base, each, _ in kept)])
    if before is not None:
        prefixes, last = np.divmod(keys, np.uint64(vocabulary))
        keys = before.result()[0][prefixes] * np.uint64(vocabulary) + last
    by_key = np.argsort(keys)
    rows = np.zeros(numbers.max(initial=-1) + 1, np.uint64)
    rows[numbers[by_key]] = np.arange(len(by_key), dtype=np.uint64)
    return rows, keys[by_key], counts[by_key]
