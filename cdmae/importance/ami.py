"""Token importance: the average mutual information of words with their neighbours (eq. 7 and 8).

Words that go together are easy to guess from one another. All of them are important, so the
decoder's mask hides them together, and only the passage's vector can restore them
(section 3.2).

W words, n-gram orders 1 to L (the window), T word-pieces.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.arrays import read_array, write_array
from cdmae.compiled import Threads, compiled
from cdmae.errors import InputError
from cdmae.files import complete, read_json, write_json
from cdmae.importance import ngrams
from cdmae.importance import table as ngram_table
from cdmae.tokens.corpus import Tokens

if TYPE_CHECKING:
    from cdmae.tokens.vocabulary import Vocabulary

PMI = ("min", "product")
NORMALISERS = ("order", "pooled")
EDGES = ("literal", "mean")
LARGEST = 65504.0  # of float16
BLOCK = 1024  # words


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

    counts [L, W]: occurrences of the n-gram that begins at each word, 0 where it would leave its
    segment; totals [L].

    Equation 7 defines PMI for two words. For more, `min` takes the minimum over all ways of cutting
    the n-gram into at least two pieces, log p(w_1..w_n) - max sum log p(piece) (Levine et al. 2021,
    eq. 3), and `product` cuts it into single words. Counts are divided by the number of n-grams of
    their order, as equation 7 says, or, `pooled`, of all orders. `literal` divides each side by L -
    1, with 0 for n-grams that do not exist at the segment's edges; `mean` takes twice the mean of
    those that exist, which is the same inside a segment.
    """
    for name, value, allowed in (
        ("pmi", pmi, PMI),
        ("normaliser", normaliser, NORMALISERS),
        ("edges", edges, EDGES),
    ):
        if value not in allowed:
            raise InputError(f"{name} is {value!r}; allowed: {', '.join(allowed)}")
    totals = np.maximum(1, np.asarray(totals, dtype=np.float64))
    norms = np.log(totals if normaliser == "order" else np.full(len(totals), totals.sum()))
    logs = np.log(np.arange(1 << 16, dtype=np.float64).clip(1))
    values = np.empty(counts.shape[1], np.float32)
    cuts = np.linspace(0, len(values), max(1, threads) + 1).astype(np.int64)
    with Threads(threads) as pool:
        pool.run(
            lambda a, b: _ami(counts, a, b, norms, logs, pmi == "min", edges == "mean", values),
            cuts,
            cuts[1:],
        )
    return values


@compiled
def _ami(counts, first, last, norms, logs, smallest, mean, values):  # noqa: ANN001, ANN202
    # Block by block, so that everything stays in the first-level cache; the n-grams that end in a
    # block begin up to L - 1 words before it. Where there is no n-gram the sums hold what nothing
    # reads.
    window = counts.shape[0]
    best = np.zeros(
        (window, BLOCK + 2 * window)
    )  # of all ways of cutting, the whole included, the largest sum log p
    pmi, sums, number = np.empty(best.shape[1]), np.empty(best.shape[1]), np.empty(best.shape[1])
    for block in range(first, last, BLOCK):
        begin = block - window + 1 if block >= window else 0
        end = block + BLOCK if block + BLOCK < last else last
        size = end - begin
        for place in range(len(sums)):
            sums[place] = 0.0
            number[place] = 0.0
        for order in range(window):  # n = order + 1
            count = counts[order, begin:]
            whole = best[order]
            for place in range(len(count) if len(count) < size + window - 1 else size + window - 1):
                seen = count[place]
                whole[place] = (
                    logs[seen] if seen < len(logs) else np.log(np.float64(seen))
                ) - norms[order]
            if order == 0:
                continue
            cut, rest = best[0], best[order - 1, 1:]
            for place in range(len(pmi) - 1):
                pmi[place] = cut[place] + rest[place]
            if smallest:
                for left in range(1, order):
                    cut, rest = best[left], best[order - left - 1, left + 1 :]
                    for place in range(len(rest)):
                        sum_ = cut[place] + rest[place]
                        pmi[place] = sum_ if sum_ > pmi[place] else pmi[place]
            for place in range(len(pmi)):
                cut_ = pmi[place]
                pmi[place] = whole[place] - cut_
                whole[place] = whole[place] if smallest and whole[place] > cut_ else cut_
            for place in range(size):
                exists = count[place] > 0
                pmi[place] = pmi[place] if exists else 0.0
                number[place] += exists
            ends, ends_number = sums[order:], number[order:]
            for place in range(size):
                sums[place] += pmi[place]
            for place in range(size - order):
                ends[place] += pmi[place]
                ends_number[place] += count[place] > 0
        for place in range(block - begin, size):
            exist = number[place] if number[place] > 0.0 else 1.0
            weight = 2.0 / exist if mean else 1.0 / (window - 1)
            values[begin + place] = sums[place] * weight


def broadcast(values: np.ndarray, tokens: Tokens, unit: str) -> np.ndarray:
    """Give every word-piece the importance of its word: float16 [T]."""
    edges = ngrams.segment_edges(tokens)
    starts = np.ones_like(tokens.word_starts) if unit == "wordpiece" else tokens.word_starts
    halves = values.clip(-LARGEST, LARGEST).astype(np.float16).view(np.uint16)
    pieces = np.empty(len(tokens.ids), np.uint16)
    words = _broadcast(np.asarray(tokens.ids), edges, starts, halves, pieces)
    if words != len(values):
        raise InputError(
            f"the counts are of {len(values):,} words, the tokens are {words:,}; delete both and "
            "run again"
        )
    return pieces.view(np.float16)


@compiled
def _broadcast(ids, edges, word_starts, values, pieces):  # noqa: ANN001, ANN202
    word = -1
    for segment in range(len(edges) - 1):
        for place in range(edges[segment], edges[segment + 1]):
            if place == edges[segment] or word_starts[ids[place]]:
                word += 1
            if word < len(values):
                pieces[place] = values[word]
    return word + 1


@dataclass(frozen=True)
class Table:
    """Scores new text with a collection's n-gram counts; n-grams without a count have 1.

    Words that are not in the collection count as seen once. `settings` are those of `ami`.
    """

    ngrams: ngram_table.Table
    settings: dict[str, Any]

    def score(self, ids: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
        """Return the importance of each word-piece of one segment (title or text): float32 [n]."""
        words, starts = self.ngrams.words(np.asarray(ids), vocabulary.word_starts)
        counts = self.ngrams.look_up(words)
        values = ami(counts, self.ngrams.totals, **self.settings)
        return np.repeat(values, np.diff(np.append(starts, len(ids))))

    def seen(self, ids: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
        """Return the share of each word's n-grams that the collection repeats: float64 [n].

        A word's n-grams are the ones that `score` averages over. Without any the share is 1.
        """
        words, starts = self.ngrams.words(np.asarray(ids), vocabulary.word_starts)
        repeated = np.zeros(len(words))
        number = np.zeros(len(words))
        for shift, counts in enumerate(self.ngrams.look_up(words)[1:], 1):
            begins = counts[:-shift]  # by the first word; the last one is `shift` words further
            for place in (slice(None, -shift), slice(shift, None)):
                repeated[place] += begins > 1
                number[place] += begins > 0
        shares = np.where(number > 0, repeated / np.maximum(number, 1), 1.0)
        return np.repeat(shares, np.diff(np.append(starts, len(ids))))

    @classmethod
    def read(cls, folder: Path | str) -> Table:
        """Read the settings from an importance's folder, and the table from its n-grams' folder."""
        return cls(ngram_table.read(folder), read_json(Path(folder) / "settings.json"))


def estimate(
    folder: Path | str,
    counted: Path | str,
    tokens: Tokens,
    settings: dict[str, Any],
    threads: int = 1,
) -> None:
    """Write the importance of `tokens`, ``values.npy`` float16 [T] aligned with the ids.

    counted: the folder of their n-grams, whose table scores new text; the importance refers to it
    by a relative path. settings: those of `ami`.
    """
    counts = ngrams.Counts.read(counted)
    values = ami(counts.counts, counts.totals, **settings, threads=threads)
    with complete(folder) as aside:
        aside.mkdir()
        write_array(aside / "values.npy", broadcast(values, tokens, counts.table.unit))
        ngram_table.refer(aside, os.path.relpath(counted, folder), counts.table.unit)
        write_json(aside / "settings.json", settings)


def read_values(folder: Path | str) -> np.ndarray:
    """Return the importance of every word-piece of a collection, float16 [T], memory-mapped."""
    return read_array(Path(folder) / "values.npy")
