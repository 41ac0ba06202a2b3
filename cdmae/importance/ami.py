"""Token importance: the average mutual information of words with their neighbours (eq. 7 and 8).

Words that often occur together are easy to guess from one another. All these words are important:
the decoder's mask hides them together, and only the passage's vector can restore them
(section 3.2).

W words, n-gram orders 1 to L (the window), T word-pieces.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.arrays import appending, read_array
from cdmae.errors import InputError
from cdmae.files import complete, read_json, write_json
from cdmae.importance import table as ngram_table
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.words import blocks, broadcast

if TYPE_CHECKING:
    from cdmae.tokens.vocabulary import Vocabulary


def ami(
    counts: np.ndarray,
    totals: np.ndarray,
    *,
    pmi: str = "min",
    normaliser: str = "order",
    edges: str = "literal",
) -> np.ndarray:
    """Return the importance of every word, AMI(w_i) of equation 8, in nats: float32 [W].

    counts [L, W]: the occurrences of the n-gram that begins at each word, 0 where the n-gram would
    leave its segment. totals [L]: the number of n-grams of each order.

    Equation 7 defines PMI for two words. For longer n-grams, `min` takes the minimum over all cuts
    into at least two pieces: log p(w_1..w_n) - max sum log p(piece) (Levine et al. 2021, eq. 3).
    `product` cuts it into single words. Counts are divided by the number of n-grams of their order,
    as in equation 7, or (`pooled`) of all orders. `literal` divides each side by L - 1, with 0 for
    n-grams that do not exist at the segment's edges. `mean` takes twice the mean of the n-grams
    that exist; inside a segment both are the same.
    """
    window, words = counts.shape
    totals = np.maximum(1, np.asarray(totals, dtype=np.float64))
    if normaliser == "pooled":
        totals = np.full(window, totals.sum())
    log_p = np.log(np.maximum(1, counts)) - np.log(totals)[:, None]
    # the largest sum log p over all ways of cutting, including no cut; per order, by first word
    best = [log_p[0]]
    sums = np.zeros(words)
    number = np.zeros(words)
    for order in range(1, window):  # n-grams of order + 1 words
        size = max(0, words - order)
        lefts = range(order if pmi == "min" else 1)  # words of the left piece, less 1
        cut = np.max([best[n][:size] + best[order - 1 - n][n + 1 :] for n in lefts], axis=0)
        whole = log_p[order, :size]
        exists = counts[order, :size] > 0
        gained = np.where(exists, whole - cut, 0.0)  # equation 7
        best.append(np.maximum(whole, cut) if pmi == "min" else cut)
        for word in (slice(size), slice(order, None)):  # the first word, and the last
            sums[word] += gained
            number[word] += exists
    weights = 2.0 / np.maximum(1.0, number) if edges == "mean" else 1.0 / max(1, window - 1)
    return (sums * weights).astype(np.float32)


def repeated(counts: np.ndarray) -> np.ndarray:
    """Return for each word the share of its n-grams that the collection repeats: float64 [W].

    counts [L, W]: as for `ami`. The n-grams of a word are those that `ami` averages; without
    n-grams the share is 1.
    """
    found = np.zeros(counts.shape[1])
    number = np.zeros(counts.shape[1])
    for shift, of_order in enumerate(counts[1:], 1):
        begins = of_order[:-shift]  # by first word; the last word is `shift` words further
        for ends in (slice(None, -shift), slice(shift, None)):
            found[ends] += begins > 1
            number[ends] += begins > 0
    return np.where(number > 0, found / np.maximum(number, 1), 1.0)


@dataclass(frozen=True)
class Table:
    """Scores new text with a collection's n-gram counts; n-grams that were not counted count as 1.

    Words that are not in the collection count as seen once. `settings` are the arguments of `ami`.
    """

    ngrams: ngram_table.Table
    settings: dict[str, Any]

    def score(
        self, segments: Sequence[np.ndarray], vocabulary: Vocabulary
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Score the word-pieces of several segments (titles or texts), [n] each.

        Returns the importance of each word-piece's word, float32, and `repeated` of it, float64.
        """
        counts = []
        lengths = []
        for ids in segments:
            words, starts = self.ngrams.words(np.asarray(ids), vocabulary.word_starts)
            counts.append(self.ngrams.look_up(words))
            lengths.append(np.diff(np.append(starts, len(ids))))
        joined = np.concatenate(counts, axis=1)
        pieces = np.concatenate(lengths)
        ends = np.cumsum([len(ids) for ids in segments])[:-1]
        values = ami(joined, self.ngrams.totals, **self.settings)
        return (
            np.split(np.repeat(values, pieces), ends),
            np.split(np.repeat(repeated(joined), pieces), ends),
        )

    @classmethod
    def read(cls, folder: Path | str) -> Table:
        """Read the settings from a folder of importance, and the table from its n-grams."""
        return cls(ngram_table.read(folder), read_json(Path(folder) / "settings.json"))


def estimate(
    folder: Path | str, counted: Path | str, tokens: Tokens, settings: dict[str, Any]
) -> None:
    """Write the importance of `tokens`, ``values.npy`` float16 [T] aligned with the ids.

    Memory does not grow with the collection: passages are scored in blocks.

    counted: the folder of n-grams; its table scores new text. The output refers to it by a
    relative path. settings: the arguments of `ami`.
    """
    table = ngram_table.read(counted)
    counts = read_array(Path(counted) / "counts.npy")
    segments = read_array(Path(counted) / "segments.npy")
    if len(segments) != 2 * len(tokens) + 1:
        raise InputError(
            f"{counted} has counts of {len(segments) // 2:,} passages, but the tokens have "
            f"{len(tokens):,}; delete both and run again"
        )
    with complete(folder) as aside:
        aside.mkdir()
        with appending(aside / "values.npy", np.float16) as append:
            first = 0
            for block in blocks(tokens):
                last = first + len(block)
                words = slice(segments[2 * first], segments[2 * last])
                values = ami(counts[:, words], table.totals, **settings)
                append(broadcast(values, block, table.unit))
                first = last
        ngram_table.refer(aside, os.path.relpath(counted, folder), table.unit)
        write_json(aside / "settings.json", settings)


def read_values(folder: Path | str) -> np.ndarray:
    """Return the importance of every word-piece of a collection, float16 [T], memory-mapped."""
    return read_array(Path(folder) / "values.npy")
