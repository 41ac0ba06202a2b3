"""Token importance: the average mutual information of words with their neighbours (eq. 7 and 8).

Words that often occur together are easy to guess from one another. All these words are important:
the decoder's mask hides them together, and only the passage's vector can restore them
(section 3.2).

W words, n-gram orders 1 to L (the window), T word-pieces.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdmae.arrays import appending
from cdmae.files import complete, read_json, write_json
from cdmae.importance import ngrams
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.words import begins, blocks, broadcast, hashes, longer


def pmis(
    counts: np.ndarray, totals: np.ndarray, *, pmi: str = "min", normaliser: str = "order"
) -> Iterator[np.ndarray]:
    """Yield the PMI of the n-gram that begins at each word, in nats, for orders 2 to L.

    Each array is float64 [W - order + 1], with 0 where the n-gram would leave its segment. counts
    [L, W]: the occurrences of the n-gram that begins at each word, 0 where it would leave its
    segment. totals [L]: the number of n-grams of each order.

    Equation 7 defines PMI for two words. For longer n-grams, `min` takes the minimum over all cuts
    into at least two pieces: log p(w_1..w_n) - max sum log p(piece) (Levine et al. 2021, eq. 3).
    `product` cuts it into single words. Counts are divided by the number of n-grams of their order,
    as in equation 7, or (`pooled`) of all orders.
    """
    window, words = counts.shape
    totals = np.maximum(1, np.asarray(totals, dtype=np.float64))
    if normaliser == "pooled":
        totals = np.full(window, totals.sum())
    log_p = np.log(np.maximum(1, counts)) - np.log(totals)[:, None]
    # the largest sum log p over all ways of cutting, including no cut; per order, by first word
    best = [log_p[0]]
    for order in range(1, window):  # n-grams of order + 1 words
        size = max(0, words - order)
        lefts = range(order if pmi == "min" else 1)  # words of the left piece, less 1
        cut = np.max([best[n][:size] + best[order - 1 - n][n + 1 :] for n in lefts], axis=0)
        whole = log_p[order, :size]
        yield np.where(counts[order, :size] > 0, whole - cut, 0.0)  # equation 7
        best.append(np.maximum(whole, cut) if pmi == "min" else cut)


def ami(
    counts: np.ndarray, totals: np.ndarray, *, edges: str = "literal", **settings: str
) -> np.ndarray:
    """Return the importance of every word, AMI(w_i) of equation 8, in nats: float32 [W].

    counts, totals, settings: as for `pmis`. `literal` divides each side by L - 1, with 0 for
    n-grams that do not exist at the segment's edges. `mean` takes twice the mean of the n-grams
    that exist; inside a segment both are the same.
    """
    window, words = counts.shape
    sums = np.zeros(words)
    number = np.zeros(words)
    for order, gained in enumerate(pmis(counts, totals, **settings), 1):
        exists = counts[order, : len(gained)] > 0
        for word in (slice(len(gained)), slice(order, None)):  # the first word, and the last
            sums[word] += gained
            number[word] += exists
    weights = 2.0 / np.maximum(1.0, number) if edges == "mean" else 1.0 / max(1, window - 1)
    return (sums * weights).astype(np.float32)


@dataclass(frozen=True)
class Table:
    """Scores new text with the n-grams that occur at least twice in a collection.

    An n-gram that is not in the table counts as seen once. N-grams of the collection itself
    therefore have exactly the counts of `cdmae.importance.ngrams`.

    keys, counts: per order, the sorted hashes of the n-grams, uint64, and their occurrences,
    uint32. totals int64 [L]: the number of n-grams per order. settings: the arguments of `ami`.
    """

    unit: str
    keys: tuple[np.ndarray, ...]
    counts: tuple[np.ndarray, ...]
    totals: np.ndarray
    settings: dict[str, Any]

    @classmethod
    def read(cls, folder: Path | str) -> Table:
        """Read the table that an importance refers to; its arrays stay on disk."""
        counted = ngrams.folder_of(folder)
        about = read_json(counted / ngrams.ABOUT)
        orders = range(1, about["window"] + 1)
        return cls(
            unit=about["unit"],
            keys=tuple(np.load(counted / f"keys_{order}.npy", mmap_mode="r") for order in orders),
            counts=tuple(
                np.load(counted / f"counts_{order}.npy", mmap_mode="r") for order in orders
            ),
            totals=np.load(counted / "totals.npy", mmap_mode="r"),
            settings=read_json(Path(folder) / "settings.json"),
        )

    def score(self, ids: np.ndarray, word_starts: np.ndarray) -> np.ndarray:
        """Return the importance of each word of one segment (a title or text), float32 [W]."""
        first = begins(ids, np.zeros(1, np.int64), word_starts, self.unit)
        return ami(self.look_up(hashes(ids, first)), self.totals, **self.settings)

    def look_up(self, words: np.ndarray) -> np.ndarray:
        """Return the counts of the n-grams that begin at each word of one segment: int64 [L, W].

        words: their hashes. N-grams that would leave the segment have the count 0.
        """
        counts = np.zeros((len(self.keys), len(words)), np.int64)
        found = words
        for order, (keys, times) in enumerate(zip(self.keys, self.counts, strict=True), 1):
            if order > 1:
                found = longer(found, words, order)
            counts[order - 1, : len(found)] = 1
            if len(keys):
                rows = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
                hits = np.flatnonzero(keys[rows] == found)
                counts[order - 1, hits] = times[rows[hits]]
        return counts


def estimate(
    output: Path | str, counted: Path | str, tokens: Tokens, formula: dict[str, Any]
) -> None:
    """Write the importance of `tokens`, ``values.npy`` float16 [T] aligned with the ids.

    Memory does not grow with the collection: passages are scored in blocks.

    counted: the folder of n-grams; its table scores new text. The output refers to it by a
    relative path. formula: the arguments of `ami`.
    """
    unit = ngrams.unit_of(counted)
    counts = np.load(Path(counted) / "counts.npy", mmap_mode="r")
    totals = np.load(Path(counted) / "totals.npy", mmap_mode="r")
    segments = np.load(Path(counted) / "segments.npy", mmap_mode="r")
    with complete(output) as aside:
        aside.mkdir()
        with appending(aside / "values.npy", np.float16) as append:
            first = 0
            for block in blocks(tokens):
                last = first + len(block)
                words = slice(segments[2 * first], segments[2 * last])
                append(broadcast(ami(counts[:, words], totals, **formula), block, unit))
                first = last
        reference = {"table": os.path.relpath(counted, output)}
        write_json(aside / ngrams.REFERENCE, reference)
        write_json(aside / "settings.json", formula)


def read_values(folder: Path | str) -> np.ndarray:
    """Return the importance of every word-piece of a collection, float16 [T], memory-mapped."""
    return np.load(Path(folder) / "values.npy", mmap_mode="r")
