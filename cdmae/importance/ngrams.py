"""Count the n-grams of a collection at each position, and make a table for new text.

Nothing is pruned. An n-gram is within one passage, and within its title or its text. It is named by
a 64-bit hash (`cdmae.tokens.words`). Hashes are sorted; if they do not fit into memory, one range
of hashes after the other is computed from the words on disk.

W words, P passages, L the longest n-gram (the window).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cdmae.arrays import appending, write_array
from cdmae.files import complete, read_json, write_json
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.words import hash_words, longer

MEMORY = 1 << 31  # bytes, unless the caller says otherwise
KEY = 80  # bytes that sorting takes per hash
BLOCK = 1 << 20  # words that are read together
ABOUT = "table.json"  # is written last: a folder without it is incomplete
REFERENCE = "ngrams.json"  # file in a folder of importance with the relative path of its n-grams


def count_to(
    output: Path | str,
    tokens: Tokens,
    *,
    unit: str = "word",
    window: int = 4,
    memory: int = MEMORY,
) -> None:
    """Count the n-grams of orders 1 to `window` (L), and write the counts and the table.

    ``counts.npy`` uint32 [L, W]: ``counts[n - 1, i]`` is the number of occurrences of the n-gram
    that begins at word i, 0 where it would leave its segment. ``segments.npy`` int64 [2 P + 1]: the
    offset of each title and each text, in words. The other files are those of
    `cdmae.importance.ami.Table`. memory: bytes, half of which are for sorting; it changes no count.
    """
    with complete(output) as aside:
        aside.mkdir()
        with TemporaryDirectory(dir=aside) as scratch:
            lengths = [np.empty(0, np.int64)]
            with appending(Path(scratch, "words.npy"), np.uint64) as append:
                for words, counts in hash_words(tokens, unit):
                    append(words)
                    lengths.append(counts)
            words = np.load(Path(scratch, "words.npy"), mmap_mode="r")
            sizes = np.concatenate(lengths)
            segments = np.cumsum(np.append(0, sizes))
            counts = _reserve(aside / "counts.npy", (window, len(words)))
            for order in range(1, window + 1):
                _count(order, words, segments, counts[order - 1], aside, memory // 2)
        totals = [np.maximum(0, sizes - order).sum() for order in range(window)]
        write_array(aside / "segments.npy", segments)
        write_array(aside / "totals.npy", np.array(totals, np.int64))
        write_json(aside / ABOUT, {"unit": unit, "window": window})


def _reserve(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Create a memory-mapped array in a file, uint32, and reserve its disk space."""
    array = np.lib.format.open_memmap(path, "w+", np.uint32, shape)
    # Without this reservation, a full disk would crash the process later (SIGBUS).
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
    return array


def _ngrams(
    order: int, words: np.ndarray, segments: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the positions and the hashes of the n-grams of one order, block by block."""
    for first in range(0, len(words), BLOCK):
        own = words[first : first + BLOCK + order - 1]
        found = own
        for size in range(2, order + 1):
            found = longer(found, own, size)
        at = first + np.arange(len(found))
        end = segments[np.searchsorted(segments, at, side="right")]
        inside = at + order <= end
        yield at[inside], found[inside]


def _count(
    order: int,
    words: np.ndarray,
    segments: np.ndarray,
    counts: np.ndarray,
    folder: Path,
    memory: int,
) -> None:
    """Write the counts of one order by position, [W], and its repeated n-grams to the table."""
    parts = 1 + len(words) * KEY // max(1, memory)
    width = np.uint64((2**64 - 1) // parts)  # of a range of hashes; the last one has the rest
    with (
        appending(folder / f"keys_{order}.npy", np.uint64) as append_keys,
        appending(folder / f"counts_{order}.npy", np.uint32) as append_counts,
    ):
        for part in range(parts):
            positions = [np.empty(0, np.int64)]
            hashes = [np.empty(0, np.uint64)]
            for at, found in _ngrams(order, words, segments):
                inside = np.minimum(found // width, parts - 1) == part
                positions.append(at[inside])
                hashes.append(found[inside])
            keys, which, times = np.unique(
                np.concatenate(hashes), return_inverse=True, return_counts=True
            )
            counts[np.concatenate(positions)] = times[which]
            append_keys(keys[times > 1])
            append_counts(times[times > 1])


def folder_of(folder: Path | str) -> Path:
    """Return the folder of n-grams: `folder` itself, or the one that an importance refers to."""
    reference = Path(folder, REFERENCE)
    if reference.exists():
        return Path(os.path.normpath(Path(folder, read_json(reference)["table"])))
    return Path(folder)


def unit_of(folder: Path | str) -> str:
    """Return the unit of n-grams, or of an importance: ``word`` or ``wordpiece``."""
    return read_json(folder_of(folder) / ABOUT)["unit"]
