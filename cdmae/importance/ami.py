"""Token importance: the average mutual information of words with their neighbours (eq. 7 and 8).

Words that often occur together are easy to guess from one another. All these words are important:
the decoder's mask hides them together, and only the passage's vector can restore them
(section 3.2).

W words, n-gram orders 1 to L (the window), T word-pieces.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.arrays import appending, read_array
from cdmae.compiled import compiled
from cdmae.errors import InputError
from cdmae.files import complete, read_json, write_json
from cdmae.importance import ngrams
from cdmae.importance import table as ngram_table
from cdmae.threads import Threads
from cdmae.tokens.corpus import Tokens

if TYPE_CHECKING:
    from cdmae.tokens.vocabulary import Vocabulary

PMI = ("min", "product")
NORMALISERS = ("order", "pooled")
EDGES = ("literal", "mean")
LARGEST = 65504.0  # the largest finite float16
BLOCK = 1024  # words
PASSAGES = 1 << 15  # passages scored together: 50 MB


def ami(
    counts: np.ndarray,
    totals: np.ndarray,
    *,
    pmi: str = "min",
    normaliser: str = "order",
    edges: str = "literal",
    threads: int = 1,
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
    for name, value, allowed in (
        ("pmi", pmi, PMI),
        ("normaliser", normaliser, NORMALISERS),
        ("edges", edges, EDGES),
    ):
        if value not in allowed:
            raise InputError(f"{name} is {value!r}; allowed: {', '.join(allowed)}")
    totals = np.maximum(1, np.asarray(totals, dtype=np.float64))
    if normaliser == "pooled":
        totals = np.full(len(totals), totals.sum())
    norms = np.log(totals)
    logs = np.log(np.arange(1 << 16, dtype=np.float64).clip(1))
    values = np.empty(counts.shape[1], np.float32)
    cuts = np.linspace(0, len(values), max(1, threads) + 1).astype(np.int64)

    def score(first: int, last: int) -> None:
        _ami(counts, first, last, norms, logs, pmi == "min", edges == "mean", values)

    with Threads(threads) as pool:
        pool.run(score, cuts, cuts[1:])
    return values


@compiled
def _ami(counts, first, last, norms, logs, smallest, mean, values):  # noqa: ANN001, ANN202
    # A block stays in the first-level cache. The n-grams that end in a block begin up to L - 1
    # words before it. Sums at positions without an n-gram are never read.
    window = counts.shape[0]
    # the largest sum log p of all ways of cutting, including no cut
    best = np.zeros((window, BLOCK + 2 * window))
    width = best.shape[1]
    pmi = np.empty(width)
    sums = np.empty(width)
    number = np.empty(width)
    for block in range(first, last, BLOCK):
        begin = max(block - window + 1, 0)
        end = min(block + BLOCK, last)
        size = end - begin
        for i in range(width):
            sums[i] = 0.0
            number[i] = 0.0
        for order in range(window):  # n = order + 1
            count = counts[order, begin:]
            whole = best[order]
            _log_shares(count[: size + window - 1], logs, norms[order], whole)
            if order == 0:
                continue
            _best_cut(best, order, smallest, pmi)
            for i in range(width):
                cut = pmi[i]
                pmi[i] = whole[i] - cut
                whole[i] = whole[i] if smallest and whole[i] > cut else cut
            _add(count, pmi, order, size, sums, number)
        for i in range(block - begin, size):
            existing = max(number[i], 1.0)
            weight = 2.0 / existing if mean else 1.0 / (window - 1)
            values[begin + i] = sums[i] * weight


@compiled
def _log_shares(count, logs, norm, shares):  # noqa: ANN001, ANN202
    """Write each n-gram's log p to `shares`, from its count and the log of the total."""
    for i in range(len(count)):
        seen = count[i]
        log = logs[seen] if seen < len(logs) else np.log(np.float64(seen))
        shares[i] = log - norm


@compiled
def _best_cut(best, order, smallest, sums):  # noqa: ANN001, ANN202
    """Write the largest sum log p over the ways of cutting an n-gram in two or more to `sums`."""
    left = best[0]
    right = best[order - 1, 1:]
    for i in range(len(right)):
        sums[i] = left[i] + right[i]
    if not smallest:
        return
    for pieces in range(1, order):
        left = best[pieces]
        right = best[order - pieces - 1, pieces + 1 :]
        for i in range(len(right)):
            total = left[i] + right[i]
            sums[i] = total if total > sums[i] else sums[i]


@compiled
def _add(count, pmi, order, size, sums, number):  # noqa: ANN001, ANN202
    """Add each n-gram's PMI to the sums of its first and its last word, and count the summands."""
    for i in range(size):
        exists = count[i] > 0
        pmi[i] = pmi[i] if exists else 0.0
        number[i] += exists
    last_sums = sums[order:]
    last_number = number[order:]
    for i in range(size):
        sums[i] += pmi[i]
    for i in range(size - order):
        last_sums[i] += pmi[i]
        last_number[i] += count[i] > 0


def broadcast(values: np.ndarray, tokens: Tokens, unit: str) -> np.ndarray:
    """Assign to every word-piece the importance of its word: float16 [T]."""
    edges = tokens.edges
    starts = np.ones_like(tokens.word_starts) if unit == "wordpiece" else tokens.word_starts
    halves = values.clip(-LARGEST, LARGEST).astype(np.float16).view(np.uint16)
    pieces = np.empty(len(tokens.ids), np.uint16)
    words = _broadcast(np.asarray(tokens.ids), edges, starts, halves, pieces)
    if words != len(values):
        raise _mismatch(f"{len(values):,} words", f"{words:,}")
    return pieces.view(np.float16)


def _mismatch(counted: str, found: str) -> InputError:
    return InputError(
        f"the counts cover {counted}, but the tokens contain {found}; delete both and run again"
    )


@compiled
def _broadcast(ids, edges, word_starts, values, pieces):  # noqa: ANN001, ANN202
    word = -1
    for segment in range(len(edges) - 1):
        for i in range(edges[segment], edges[segment + 1]):
            if i == edges[segment] or word_starts[ids[i]]:
                word += 1
            if word < len(values):
                pieces[i] = values[word]
    return word + 1


@dataclass(frozen=True)
class Table:
    """Scores new text with a collection's n-gram counts; n-grams that were not counted count as 1.

    Words that are not in the collection count as seen once. `settings` are the arguments of `ami`.
    """

    ngrams: ngram_table.Table
    settings: dict[str, Any]

    def score(self, ids: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
        """Return the importance of each word-piece of one segment (title or text): float32 [n]."""
        return self.score_all([ids], vocabulary)[0]

    def score_all(self, segments: list[np.ndarray], vocabulary: Vocabulary) -> list[np.ndarray]:
        """Return the importance of the word-pieces of several segments: float32 [n] each."""
        counts = []
        lengths = []
        for ids in segments:
            words, starts = self.ngrams.words(np.asarray(ids), vocabulary.word_starts)
            counts.append(self.ngrams.look_up(words))
            lengths.append(np.diff(np.append(starts, len(ids))))
        values = ami(np.concatenate(counts, axis=1), self.ngrams.totals, **self.settings)
        pieces = np.repeat(values, np.concatenate(lengths))
        return np.split(pieces, np.cumsum([len(ids) for ids in segments])[:-1])

    def seen(self, ids: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
        """Return, for each word, the share of its n-grams that the collection repeats: float64 [n].

        The n-grams of a word are the n-grams that `score` averages; without n-grams the share is 1.
        """
        words, starts = self.ngrams.words(np.asarray(ids), vocabulary.word_starts)
        repeated = np.zeros(len(words))
        number = np.zeros(len(words))
        for shift, counts in enumerate(self.ngrams.look_up(words)[1:], 1):
            begins = counts[:-shift]  # by first word; the last word is `shift` words further
            for ends in (slice(None, -shift), slice(shift, None)):
                repeated[ends] += begins > 1
                number[ends] += begins > 0
        shares = np.where(number > 0, repeated / np.maximum(number, 1), 1.0)
        return np.repeat(shares, np.diff(np.append(starts, len(ids))))

    @classmethod
    def read(cls, folder: Path | str) -> Table:
        """Read the settings from a folder of importance, and the table from its n-grams."""
        return cls(ngram_table.read(folder), read_json(Path(folder) / "settings.json"))


def estimate(
    folder: Path | str,
    counted: Path | str,
    tokens: Tokens,
    settings: dict[str, Any],
    threads: int = 1,
) -> None:
    """Write the importance of `tokens`, ``values.npy`` float16 [T] aligned with the ids.

    Memory does not grow with the collection: passages are scored in blocks.

    counted: the folder of n-grams; its table scores new text. The output refers to it by a
    relative path. settings: the arguments of `ami`.
    """
    counts = ngrams.Counts.read(counted)
    unit = counts.table.unit
    passages = (len(counts.segments) - 1) // 2
    if passages != len(tokens):
        raise _mismatch(f"{passages:,} passages", f"{len(tokens):,}")
    with complete(folder) as aside:
        aside.mkdir()
        with appending(aside / "values.npy", np.float16) as append:
            for first in range(0, passages, PASSAGES):
                last = min(first + PASSAGES, passages)
                words = slice(counts.segments[2 * first], counts.segments[2 * last])
                block = np.ascontiguousarray(counts.counts[:, words])
                values = ami(block, counts.totals, **settings, threads=threads)
                append(broadcast(values, tokens.part(first, last), unit))
        ngram_table.refer(aside, os.path.relpath(counted, folder), unit)
        write_json(aside / "settings.json", settings)


def read_values(folder: Path | str) -> np.ndarray:
    """Return the importance of every word-piece of a collection, float16 [T], memory-mapped."""
    return read_array(Path(folder) / "values.npy")
