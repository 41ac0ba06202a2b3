"""Count the n-grams of a collection of any size in shards.

The result is bit-identical to the result of `cdmae.importance.ngrams`. A shard is a range of
passages. Each step below is one job per shard or per range of keys. Its memory depends on the size
of a shard, not of the collection:

- `number` assigns numbers to the words of a shard; `merge_words` merges the shards' words.
- For each order, `list_keys` lists the distinct keys of a shard with their counts, sorted. Then
  `merge_keys` adds up the counts of a range of keys over all shards, writes the range's part of the
  table, and writes an answer (counts and rows) for every shard.
- `list_keys` of the next order spreads the answers over the shard's positions. N-grams whose first
  or last n-1 words occur once need no keys. After the longest order, only the answers are spread.
- `gather` joins the parts.

A key is ``row of the first n-1 words in the table x V + last word``, as in the table. Ranges are
cut by regular sampling (Shi and Schaeffer 1992) and have about equal sizes for every text. Files
between jobs are mapped without reading their checksums, since every job reads a part of every file.

N shards, R ranges, W words, V words in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from cdmae.arrays import appending, map_array, read_array, write_array
from cdmae.errors import InputError
from cdmae.files import complete, read_json, write_json
from cdmae.importance import counting, ngrams
from cdmae.importance import table as ngram_table
from cdmae.tokens.corpus import Tokens

SAMPLES = 4096  # keys sampled from each shard to find the bounds of the ranges
ABOUT = "about.json"
MOST_COUNTS = 2**32 - 1  # of uint32
MOST_KEYS = 2**64


# --- words ----------------------------------------------------------------------------------------


def number(folder: Path | str, tokens: Tokens, unit: str, threads: int = 1) -> None:
    """Assign numbers to the words of a shard, and count their occurrences."""
    ngrams.check_unit(unit)
    words, segments, word_keys = ngrams.words_of(tokens, unit, threads)
    pieces = len(tokens.word_starts)
    with complete(folder) as aside:
        aside.mkdir()
        write_array(aside / "words.npy", words)
        write_array(aside / "segments.npy", segments)
        write_array(aside / "word_keys.npy", word_keys)
        occurrences = np.bincount(words, minlength=pieces + len(word_keys))
        write_array(aside / "occurrences.npy", occurrences)
        write_json(aside / ABOUT, {"unit": unit, "pieces": pieces})


def merge_words(folder: Path | str, numbered: Sequence[Path]) -> None:
    """Merge the words of all shards into one vocabulary.

    numbered: the folders that `number` wrote, in the order of the text.
    """
    about = read_json(numbered[0] / ABOUT)
    pieces = about["pieces"]
    vocabulary = ngrams.LongWords(pieces)
    occurrences = np.zeros(pieces, np.int64)
    with complete(folder) as aside:
        aside.mkdir()
        for shard, path in enumerate(numbered):
            numbers = vocabulary.add(np.array(read_array(path / "word_keys.npy")))
            if len(vocabulary.keys) + pieces >= 2**32:
                raise InputError(
                    f"the collection has more than {2**32 - 1:,} distinct words, which cannot be "
                    "numbered; pre-train on a smaller collection, or with unit: wordpiece"
                )
            added = pieces + len(vocabulary.keys) - len(occurrences)
            occurrences = np.concatenate([occurrences, np.zeros(added, np.int64)])
            own = read_array(path / "occurrences.npy")
            occurrences[:pieces] += own[:pieces]
            occurrences[numbers] += own[pieces:]
            write_array(aside / f"numbers_{shard}.npy", numbers)
        write_array(aside / "word_keys.npy", vocabulary.keys)
        write_array(aside / "occurrences.npy", occurrences.astype(_dtype(occurrences)))
        write_json(aside / ABOUT, about)


def _dtype(occurrences: np.ndarray) -> type:
    """Return a type for all counts: no n-gram occurs more often than there are words."""
    return np.uint32 if occurrences.sum() <= MOST_COUNTS else np.uint64


# --- n-grams --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shard:
    """Hold the words of a shard, as their numbers in the collection, uint32 [W], for one order.

    index: the shard's index, starting at 0. left: uint8 [W], the number of words from each word to
    the end of its segment, at most the window + 1. occurrences: [V], the count of each word.
    """

    index: int
    words: np.ndarray
    left: np.ndarray
    occurrences: np.ndarray

    @classmethod
    def read(cls, index: int, numbered: Path, vocabulary: Path, window: int) -> Shard:
        """Read the folders of `number` and of `merge_words`."""
        pieces = read_json(vocabulary / ABOUT)["pieces"]
        words = np.array(read_array(numbered / "words.npy"))
        numbers = np.array(read_array(vocabulary / f"numbers_{index}.npy"))
        counting.renumber(words, pieces, numbers)
        segments = np.array(read_array(numbered / "segments.npy"))
        left = np.empty(len(words), np.uint8)
        counting.room_left(segments, 0, len(segments) - 1, window + 1, left)
        return cls(index, words, left, read_array(vocabulary / "occurrences.npy"))

    def to_count(self, order: int, shorter: np.ndarray) -> np.ndarray:
        """Return the positions of the n-grams that may be repeated; shorter: counts of order n - 1.

        An n-gram occurs once if its first or its last n - 1 words do.
        """
        repeated = shorter > 1
        counted = self.left >= order
        counted &= repeated
        counted[:-1] &= repeated[1:]
        return np.flatnonzero(counted)

    def answered(
        self, order: int, shorter: np.ndarray, keys: Path, answers: Sequence[Path]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the count of the n-gram at each position and, where repeated, its row, uint64.

        shorter: counts of order n - 1; keys: the shard's folder of this order; answers: the folders
        of all ranges.
        """
        positions = self.to_count(order, shorter)
        inverse = map_array(keys / "inverse.npy")
        own_counts = []
        own_rows = []
        rows_before = 0
        for folder in answers:
            first, last = map_array(folder / "edges.npy")[self.index : self.index + 2]
            own_counts.append(map_array(folder / "counts.npy")[first:last])
            in_range = map_array(folder / "rows.npy")[first:last].astype(np.uint64)
            own_rows.append(in_range + np.uint64(rows_before))
            rows_before += read_json(folder / ABOUT)["rows"]
        counts = (self.left >= order).astype(self.occurrences.dtype)
        counts[positions] = np.concatenate(own_counts)[inverse]
        rows = np.zeros(len(counts), np.uint64)
        rows[positions] = np.concatenate(own_rows)[inverse]
        return counts, rows


@dataclass(frozen=True)
class Step:
    """Name the files of a shard and an order: counts of order n - 1 by position, keys of order n.

    answers: the folders of all ranges of this order, once its keys are counted.
    """

    counts: Path
    keys: Path
    answers: Sequence[Path] = ()


def list_keys(
    step: Step, shard: Shard, order: int, window: int, before: Step | None = None
) -> None:
    """Write the counts of order n - 1 by position, and the distinct keys of order n with counts.

    order: from 2 to window + 1; the last order has no keys, and an empty folder. before: the step
    of the previous order, from order 3.
    """
    if before is None:
        counts = shard.occurrences[shard.words]
        rows = shard.words.astype(np.uint64)
    else:
        shorter = map_array(before.counts)
        counts, rows = shard.answered(order - 1, shorter, before.keys, before.answers)
    with complete(step.counts) as aside:
        write_array(aside, counts)
    with complete(step.keys) as aside:
        aside.mkdir()
        if order <= window:
            _write_keys(aside, shard, order, counts, rows)


def _write_keys(
    folder: Path, shard: Shard, order: int, shorter: np.ndarray, rows: np.ndarray
) -> None:
    """Write the distinct keys of a shard, their number, and the key at each counted position.

    shorter and rows: of order n - 1, by position.
    """
    vocabulary = len(shard.occurrences)
    positions = shard.to_count(order, shorter)
    all_keys = rows[positions]
    largest = int(all_keys.max(initial=0))
    if (largest + 1) * vocabulary > MOST_KEYS:
        raise InputError(
            f"{largest + 1:,} n-grams of {order - 1} words times {vocabulary:,} distinct words "
            "exceed 64 bits; pre-train on a smaller collection, or with unit: wordpiece"
        )
    all_keys *= np.uint64(vocabulary)
    all_keys += shard.words[positions + (order - 1)]
    keys, inverse, times = np.unique(all_keys, return_inverse=True, return_counts=True)
    write_array(folder / "keys.npy", keys)
    write_array(folder / "samples.npy", keys[:: max(1, len(keys) // SAMPLES)])
    write_array(folder / "times.npy", times.astype(np.uint32))
    write_array(folder / "inverse.npy", inverse.astype(np.uint32))


def merge_keys(
    table: Path | str, answers: Path | str, listed: Sequence[Path], part: int, parts: int
) -> None:
    """Add up the counts of the keys in range number `part`, from 0, of `parts` over all shards.

    table: the folder for n-grams that occur at least twice. answers: the folder for the count, and
    the row in this range, of every key of shard s, from ``edges[s]`` on.
    """
    keys = [map_array(path / "keys.npy") for path in listed]
    cuts = _cuts(listed, keys, parts)
    pieces = []
    for shard in keys:
        edges = np.concatenate([[0], np.searchsorted(shard, cuts), [len(shard)]])
        pieces.append(slice(edges[part], edges[part + 1]))
    own = np.concatenate([shard[piece] for shard, piece in zip(keys, pieces, strict=True)])
    distinct, inverse = np.unique(own, return_inverse=True)
    del own
    totals = np.zeros(len(distinct), np.uint64)
    times = [
        map_array(path / "times.npy")[piece] for path, piece in zip(listed, pieces, strict=True)
    ]
    np.add.at(totals, inverse, np.concatenate(times).astype(np.uint64))
    repeated = totals > 1
    rows = np.cumsum(repeated) - repeated  # the rows of other keys are never read
    with complete(table) as aside:
        aside.mkdir()
        write_array(aside / "keys.npy", distinct[repeated])
        write_array(aside / "counts.npy", _small(totals)[repeated])
    with complete(answers) as aside:
        aside.mkdir()
        write_array(aside / "counts.npy", _small(totals)[inverse])
        write_array(aside / "rows.npy", _small(rows)[inverse])
        lengths = [piece.stop - piece.start for piece in pieces]
        write_array(aside / "edges.npy", np.cumsum([0, *lengths]))
        write_json(aside / ABOUT, {"rows": int(repeated.sum())})


def _cuts(listed: Sequence[Path], keys: Sequence[np.ndarray], parts: int) -> np.ndarray:
    """Return the bounds between ranges of about equal size, uint64 [parts - 1], from the samples.

    The error of each shard is at most the distance between two of its samples.
    """
    samples = [map_array(path / "samples.npy") for path in listed]
    weights = [
        np.full(len(own), len(shard) / max(1, len(own)))
        for own, shard in zip(samples, keys, strict=True)
    ]
    joined = np.concatenate(samples)
    by_key = np.argsort(joined)
    cumulated = np.cumsum(np.concatenate(weights)[by_key])
    if not len(joined):
        return np.zeros(parts - 1, np.uint64)
    goals = cumulated[-1] * np.arange(1, parts) / parts
    return joined[by_key][np.searchsorted(cumulated, goals)]


def _small(values: np.ndarray) -> np.ndarray:
    """Convert numbers to uint32 if they fit."""
    return values.astype(np.uint32 if values.max(initial=0) <= MOST_COUNTS else np.uint64)


# --- the result -----------------------------------------------------------------------------------


def gather(
    folder: Path | str,
    vocabulary: Path,
    numbered: Sequence[Path],
    counts: Sequence[Sequence[Path]],
    tables: Sequence[Sequence[Path]],
    consume: bool = False,
) -> None:
    """Write the same folder as `ngrams.count_to`, from the files of the shards and ranges.

    counts: by order, then by shard; tables: by order from 2, then by range. consume: delete each
    file of `counts` once it is copied. Such a job cannot be repeated, but needs half the disk.
    """
    window = len(counts)
    about = read_json(vocabulary / ABOUT)
    occurrences = read_array(vocabulary / "occurrences.npy")
    word_keys = np.array(read_array(vocabulary / "word_keys.npy"))
    word_keys, word_numbers = ngrams.sorted_words(word_keys, about["pieces"])
    with complete(folder) as aside:
        aside.mkdir()
        totals = _join_segments(aside / "segments.npy", numbered, window)
        write_array(aside / "totals.npy", totals)
        write_array(aside / "word_keys.npy", word_keys)
        write_array(aside / "word_numbers.npy", word_numbers)
        write_array(aside / "occurrences.npy", occurrences)
        with appending(aside / "counts.npy", occurrences.dtype, rows=window) as append:
            for file in chain.from_iterable(counts):
                append(read_array(file))
                if consume:
                    file.unlink()
        for order, ranges in enumerate(tables, 2):
            for name, dtype in (("keys", np.uint64), ("counts", occurrences.dtype)):
                with appending(aside / f"{name}_{order}.npy", dtype) as append:
                    for part in ranges:
                        append(read_array(part / f"{name}.npy"))
        ngram_table.write_about(aside, about["unit"], about["pieces"], window)


def _join_segments(path: Path, numbered: Sequence[Path], window: int) -> np.ndarray:
    """Join the shards' offsets of titles and texts, in words; return the totals [L]."""
    words = 0
    totals = np.zeros(window, np.int64)
    with appending(path, np.int64) as append:
        append(np.zeros(1, np.int64))
        for folder in numbered:
            segments = read_array(folder / "segments.npy")
            append(segments[1:] + words)
            words += int(segments[-1])
            totals += ngrams.totals_of(segments, window)
    return totals
