"""Count the n-grams of a collection at each position, and make a table for new text.

Counts are exact: nothing is pruned. An n-gram is within one passage, and within its title or its
text. An n-gram's key is ``row of its first n - 1 words in the table x V + last word``, below 2^64.
Keys are sorted; if they do not fit into memory, one range of keys after the other is read
from the words on disk. If the first or the last n - 1 words of an n-gram occur once, so does the
n-gram: it has no key.

W words, P passages, L the longest n-gram (the window), V words in the vocabulary.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from cdmae.arrays import appending, read_array, write_array
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.importance import table as ngram_table
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.words import number_words

MEMORY = 1 << 30  # bytes for sorting, unless the caller says otherwise
KEY = 80  # bytes that sorting takes per key
BLOCK = 1 << 20  # words that are read together
SAMPLE = 256  # one of so many keys decides where ranges of keys end
SMALL = 2**32 - 1  # the most words whose counts are uint32; counts of more words are uint64
MOST = 2**64  # the most keys


class _Text(NamedTuple):
    """The words by number, uint32 [W]; V; segments int64 [2 P + 1], in words; and counts [L, W]."""

    words: np.ndarray
    vocabulary: int
    segments: np.ndarray
    counts: np.ndarray


def count_to(
    folder: Path | str,
    tokens: Tokens,
    *,
    unit: str = "word",
    window: int = 4,
    memory: int = MEMORY,
) -> None:
    """Count the n-grams of orders 1 to `window` (L), and write the counts and the table.

    ``counts.npy`` [L, W]: ``counts[n - 1, i]`` is the number of occurrences of the n-gram that
    begins at word i, 0 where it would leave its segment; uint32, or uint64 for more than `SMALL`
    words. ``segments.npy`` int64 [2 P + 1]: the offset of each title and each text, in words. The
    other files are those of `cdmae.importance.table.Table`.

    memory: bytes for sorting; it changes no count. Offsets take further memory, 64 bytes per
    passage, and so does the vocabulary, 32 bytes per word in it.
    """
    with complete(folder) as aside:
        aside.mkdir()
        with TemporaryDirectory(dir=aside) as scratch:
            with appending(Path(scratch, "words.npy"), np.uint32) as append:
                segments, numbering = number_words(tokens, unit, append)
            words = read_array(Path(scratch, "words.npy"))
            kind = np.uint32 if len(words) <= SMALL else np.uint64
            counts = _reserve(aside / "counts.npy", (window, len(words)), kind)
            text = _Text(words, len(numbering), segments, counts)
            write_array(aside / "occurrences.npy", _count_words(text))
            rows = words
            number = text.vocabulary
            for order in range(2, window + 1):
                if number * text.vocabulary > MOST:
                    raise InputError(
                        f"n-grams of {order} words cannot be counted: {number:,} repeated "
                        f"beginnings x {text.vocabulary:,} words exceed 2^64; lower window to "
                        f"{order - 1}, or count by unit wordpiece"
                    )
                longer = _reserve(Path(scratch, f"rows_{order}.npy"), (len(words),), kind)
                number = _count(order, text, rows, longer, aside, memory)
                rows = longer
        lengths = np.diff(segments)
        totals = [np.maximum(0, lengths - order).sum() for order in range(window)]
        write_array(aside / "segments.npy", segments)
        write_array(aside / "word_keys.npy", numbering.keys)
        write_array(aside / "word_numbers.npy", numbering.numbers)
        write_array(aside / "totals.npy", np.array(totals, np.int64))
        ngram_table.write_about(aside, unit, numbering.pieces, window)


def _reserve(path: Path, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Create a memory-mapped array in a file, and reserve its disk space."""
    array = np.lib.format.open_memmap(path, "w+", dtype, shape)
    # Without this reservation, a full disk would crash the process later (SIGBUS).
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
    return array


def _cut(number: int) -> Iterator[slice]:
    """Yield slices of `BLOCK` positions."""
    for first in range(0, number, BLOCK):
        yield slice(first, min(first + BLOCK, number))


def _count_words(text: _Text) -> np.ndarray:
    """Return each word's occurrences [V], and write them by position."""
    occurrences = np.zeros(text.vocabulary, text.counts.dtype)
    for block in _cut(len(text.words)):
        words, times = np.unique(text.words[block], return_counts=True)
        occurrences[words] += times.astype(occurrences.dtype)
    for block in _cut(len(text.words)):
        text.counts[0, block] = occurrences[text.words[block]]
    return occurrences


def _keys(order: int, text: _Text, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield positions and keys, uint64, of n-grams whose parts of n - 1 words are repeated.

    rows [W]: the row of the n-gram of the order below that begins at each word, if it is repeated.
    """
    for block in _cut(len(text.words) - order + 1):
        repeated = text.counts[order - 2, block.start : block.stop + 1] > 1
        inside = text.counts[order - 1, block] > 0
        at = block.start + np.flatnonzero(inside & repeated[:-1] & repeated[1:])
        prefixes = rows[at].astype(np.uint64)
        yield at, prefixes * np.uint64(text.vocabulary) + text.words[at + order - 1]


def _count(
    order: int, text: _Text, rows: np.ndarray, longer: np.ndarray, folder: Path, memory: int
) -> int:
    """Count the n-grams of one order by position, and write the repeated ones to the table.

    Returns the number of repeated ones. rows: see `_keys`; longer [W]: the same for this order,
    written.
    """
    counts = text.counts[order - 1]
    for block in _cut(len(text.words)):
        begin = np.arange(block.start, block.stop)
        end = text.segments[np.searchsorted(text.segments, begin, side="right")]
        counts[block] = begin + order <= end  # once, or not at all
    cuts = _cuts(_keys(order, text, rows), memory)
    number = 0
    with (
        appending(folder / f"keys_{order}.npy", np.uint64) as append_keys,
        appending(folder / f"counts_{order}.npy", counts.dtype.type) as append_counts,
    ):
        for part in range(len(cuts) + 1):
            at, keys = _in_part(_keys(order, text, rows), cuts, part)
            keys, which, times = np.unique(keys, return_inverse=True, return_counts=True)
            repeated = times > 1
            counts[at] = times[which]
            longer[at] = (number + np.cumsum(repeated) - 1)[which]
            append_keys(keys[repeated])
            append_counts(times[repeated])
            number += int(repeated.sum())
    return number


def _cuts(keys: Iterator[tuple[np.ndarray, np.ndarray]], memory: int) -> np.ndarray:
    """Return the bounds between ranges of keys that can be sorted in `memory`, by a sample."""
    sample = [np.empty(0, np.uint64)]
    number = 0
    for _, found in keys:
        sample.append(found[::SAMPLE])
        number += len(found)
    ordered = np.sort(np.concatenate(sample))
    parts = -(-number * KEY // max(1, memory))
    return np.unique(ordered[np.arange(1, parts) * len(ordered) // max(1, parts)])


def _in_part(
    keys: Iterator[tuple[np.ndarray, np.ndarray]], cuts: np.ndarray, part: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and keys of one range."""
    at = [np.empty(0, np.int64)]
    own = [np.empty(0, np.uint64)]
    for positions, found in keys:
        inside = np.searchsorted(cuts, found, side="right") == part
        at.append(positions[inside])
        own.append(found[inside])
    return np.concatenate(at), np.concatenate(own)
