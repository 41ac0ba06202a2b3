"""Collocations masked as units: PMI-Masking (Levine et al. 2021, sections 3 and 4).

A unit is an n-gram of high PMI, or a word that is in no such n-gram. The n-grams and their counts
come from the importance estimate. N-grams seen at least `SEEN` times are ranked by
PMI within their length. Half of the chosen n-grams are pairs, a quarter are triples, and the rest
are longer. The paper uses 800,000 n-grams, which cover about half of its corpus. Here the list is
long enough to cover half of the collection, counted without regard to overlaps.
"""

# ruff: noqa: ANN001, ANN202 (numba infers the types)
from __future__ import annotations

from bisect import bisect_right

import numpy as np

from cdmae.compiled import compiled
from cdmae.errors import InputError
from cdmae.importance.table import Table
from cdmae.masking import SELECT, Batch, Corpus, Side
from cdmae.masking.noise import Key, draws
from cdmae.masking.strategies.whole_word import choose
from cdmae.tokens.words import begins, words_of

IN_WORDS = "with collocations as units"
READS = ("ngrams", "unit word")
SEEN = 10  # minimum occurrences of a collocation
COVERED = 0.5  # share of the collection's words that are in collocations


def values(corpus: Corpus) -> np.ndarray:
    """Return 1 for the first word-piece of each unit and 0 for the others: float16 [T]."""
    tokens = corpus.tokens
    table = corpus.ngrams
    if table.unit != "word":
        raise InputError(
            f"{corpus.estimate} counts word-pieces; masking by pmi_span needs `unit: word`"
        )
    chosen = collocations(table)
    if not any(units.any() for units in chosen):
        raise InputError(
            f"no n-gram of the collection occurs {SEEN} times; masking by pmi_span needs more text"
        )
    words, segments, _ = words_of(tokens, "word")  # the same numbers as in the table
    if len(words) != table.totals[0]:
        raise InputError(
            f"{corpus.estimate} has counts of {table.totals[0]:,} words, but the tokens have "
            f"{len(words):,}; delete it and run again"
        )
    units = np.zeros(len(words), bool)
    offsets = np.cumsum([0, *map(len, table.keys)])
    keys = np.concatenate(table.keys)
    _segment(words, segments, len(table.occurrences), keys, np.concatenate(chosen), offsets, units)
    first = begins(tokens.ids, tokens.edges, tokens.word_starts, "word")
    values = np.zeros(len(first), np.float16)
    values[first] = units
    return values


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask k word-pieces by visiting the units in random order: bool [B, n]."""
    chosen = np.zeros(batch.ids.shape, bool)
    order = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    choose(order, batch.values > 0, batch.candidates, batch.k, chosen)
    return chosen


def collocations(table: Table) -> list[np.ndarray]:
    """Mark the n-grams of the table that are units, per order from 2: bool [rows]."""
    values = pmi(table)
    ranked = []
    words = []
    for order, (pmis, counts) in enumerate(zip(values, table.counts, strict=True), 2):
        rows = np.flatnonzero(counts >= SEEN)
        rows = rows[np.argsort(-pmis[rows], kind="stable")]
        ranked.append(rows)
        words.append(np.concatenate([[0], np.cumsum(counts[rows].astype(np.int64) * order)]))
    quotas = [2.0**-order for order in range(1, len(ranked))] + [2.0 ** -(len(ranked) - 1)]

    def covered(size: int) -> int:
        """Count the words in a list of `size` n-grams, without regard to overlaps."""
        return sum(
            sums[min(int(size * quota), len(sums) - 1)]
            for sums, quota in zip(words, quotas, strict=True)
        )

    most = int(max(len(rows) / quota for rows, quota in zip(ranked, quotas, strict=True)))
    # the longest list that covers at most the share COVERED
    size = bisect_right(range(most + 1), COVERED * table.totals[0], key=covered) - 1
    chosen = [np.zeros(len(counts), bool) for counts in table.counts]
    for rows, quota, into in zip(ranked, quotas, chosen, strict=True):
        into[rows[: int(size * quota)]] = True
    return chosen


def pmi(table: Table) -> list[np.ndarray]:
    """Compute the PMI of every n-gram (PMI-Masking, equation 3), per order from 2: float64 [rows].

    PMI is log p(w_1 .. w_n) minus the largest sum of log p over the pieces of any segmentation into
    two pieces or more. The table contains every part of its n-grams.
    """
    size = np.uint64(len(table.occurrences))
    log_p = [np.log(np.maximum(1, table.occurrences)) - np.log(table.totals[0])]
    totals = np.maximum(1, table.totals[1:])  # the longest n-grams may be missing
    for counts, total in zip(table.counts, totals, strict=True):
        log_p.append(np.log(counts) - np.log(total))
    best = [log_p[0]]  # the largest sum over all segmentations, the whole n-gram included
    pmis = []
    # For n-grams of the previous order: the rows of (prefix, rest), per length of the prefix.
    before: list[tuple[np.ndarray, np.ndarray]] = []
    for order, keys in enumerate(table.keys, 2):
        prefix, last = (array.astype(np.int64) for array in np.divmod(np.asarray(keys), size))
        heads = [prefix]  # cut before the last word
        tails = [last]
        for length in range(order - 2, 0, -1):
            head, tail = before[order - 2 - length]
            key = tail[prefix].astype(np.uint64) * size + last.astype(np.uint64)
            heads.append(head[prefix])
            tails.append(np.searchsorted(table.keys[order - length - 2], key))
        before = list(zip(heads, tails, strict=True))
        cut = np.full(len(keys), -np.inf)
        for length, (head, tail) in zip(range(order - 1, 0, -1), before, strict=True):
            np.maximum(cut, log_p[length - 1][head] + best[order - length - 1][tail], out=cut)
        pmis.append(log_p[order - 1] - cut)
        best.append(np.maximum(log_p[order - 1], cut))
    return pmis


@compiled
def _segment(words, segments, size, keys, chosen, offsets, units):
    # From the left, take the longest collocation that begins at each word. The keys of order n are
    # keys[offsets[n - 2]:offsets[n - 1]].
    longest = len(offsets)  # the highest order
    for segment in range(len(segments) - 1):
        position = segments[segment]
        end = segments[segment + 1]
        while position < end:
            units[position] = True
            row = np.int64(words[position])
            unit_end = position + 1
            for following in range(position + 1, min(end, position + longest)):
                first = offsets[following - position - 1]
                last = offsets[following - position]
                key = np.uint64(row) * np.uint64(size) + np.uint64(words[following])
                row = np.searchsorted(keys[first:last], key)
                if first + row == last or keys[first + row] != key:
                    break
                if chosen[first + row]:
                    unit_end = following + 1
            position = unit_end
