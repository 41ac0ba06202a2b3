"""Collocations masked as units: PMI-Masking (Levine et al. 2021, sections 3 and 4).

A unit is an n-gram of high PMI, or a word that is in no such n-gram. The n-grams and their counts
come from the importance estimate. N-grams seen at least `SEEN` times are ranked by
PMI within their length. Half of the chosen n-grams are pairs, a quarter are triples, and the rest
are longer. The paper uses 800,000 n-grams, which cover about half of its corpus. Here the list is
long enough to cover half of the collection, counted without regard to overlaps.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from cdmae.compiled import compiled
from cdmae.errors import InputError
from cdmae.importance.ami import pmis
from cdmae.masking import SELECT, Batch, Corpus, Side
from cdmae.masking.noise import Key, draws
from cdmae.masking.strategies.whole_word import choose
from cdmae.tokens.words import begins

READS = "ngrams"
SEEN = 10  # minimum occurrences of a collocation
COVERED = 0.5  # share of the collection's words that are in collocations


def values(corpus: Corpus) -> np.ndarray:
    """Return 1 for the first word-piece of each unit and 0 for the others: float16 [T]."""
    tokens = corpus.tokens
    first = begins(tokens.ids, tokens.edges, tokens.word_starts, "word")
    longest = collocations(*corpus.ngrams)
    if not (longest > 1).any():
        raise InputError(
            f"no n-gram of the collection occurs {SEEN} times; masking by pmi_span needs more text"
        )
    units = np.zeros(len(longest), bool)
    _divide(longest, units)
    values = np.zeros(len(first), np.float16)
    values[first] = units
    return values


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask k word-pieces by visiting the units in random order: bool [B, n]."""
    chosen = np.zeros(batch.ids.shape, bool)
    order = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    choose(order, batch.values > 0, batch.candidates, batch.k, chosen)
    return chosen


def collocations(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the length of the longest collocation that begins at each word, or 1: int64 [W].

    counts [L, W], totals [L]: as for `cdmae.importance.ami.pmis`.
    """
    places = []  # per order, the words where frequent n-grams begin, the highest PMI first
    values = []
    listed = []  # the number of different n-grams up to each of these
    for order, found in enumerate(pmis(counts, totals), 2):
        at = np.flatnonzero(counts[order - 1, : len(found)] >= SEEN)
        at = at[np.argsort(-found[at], kind="stable")]
        places.append(at)
        values.append(found[at])
        listed.append(np.cumsum(1 / counts[order - 1, at]))
    shares = [0.5**order for order in range(1, len(places) + 1)]
    shares[-1] *= 2

    def numbers(size: int) -> list[int]:
        """Return, per order, the number of places of its share of a list of `size` n-grams."""
        ends = zip(listed, shares, strict=True)
        return [int(np.searchsorted(each, int(size * share) + 1e-3)) for each, share in ends]

    def covered(size: int) -> int:
        """Count the words in a list of `size` n-grams, without regard to overlaps."""
        return sum(order * number for order, number in enumerate(numbers(size), 2))

    most = sum(int(len(each) / share) for each, share in zip(listed, shares, strict=True))
    # the longest list that covers at most the share COVERED
    size = bisect_right(range(most + 1), COVERED * totals[0], key=covered) - 1
    longest = np.ones(counts.shape[1], np.int64)
    for order, number in enumerate(numbers(size)):
        # n-grams of equal PMI are chosen together
        rest = values[order][number:]
        lowest = rest[0] if len(rest) else -np.inf
        longest[places[order][values[order] > lowest]] = order + 2
    return longest


@compiled
def _divide(longest, units):  # noqa: ANN001, ANN202
    # From the left, take the longest collocation that begins at each word.
    position = 0
    while position < len(longest):
        units[position] = True
        position += longest[position]
