"""Collocations masked as units: PMI-Masking (Levine et al. 2021, sections 3 and 4).

A unit is an n-gram of high PMI, or a word that belongs to none. The n-grams come from the collection itself, with the
counts that the importance is estimated from: those seen at least `SEEN` times, ranked by PMI within their length, half
of the list pairs, a quarter triples, the rest longer ones. The paper takes 800,000, which cover about half of its
corpus; here the list is as long as covers half of the collection, were its n-grams never to overlap.
"""

# ruff: noqa: ANN001, ANN202 (numba infers the types)
from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.compiled import compiled
from cdmae.errors import InputError
from cdmae.importance import ngrams
from cdmae.importance import table as ngram_table
from cdmae.importance.table import Table
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import Key, draws
from cdmae.masking.strategies._top import budget
from cdmae.masking.strategies.whole_word import choose
from cdmae.tokens.corpus import Tokens

SEEN = 10  # occurrences of a collocation
COVERED = 0.5  # of the collection's words


def values(tokens: Tokens, importance: Path | None) -> np.ndarray:
    """1 where a unit begins and 0 inside of it, for each word-piece: float16 [T]."""
    if importance is None:
        raise InputError("masking by pmi_span needs n-grams and their counts; name an entry of `importance`")
    table = ngram_table.read(importance)
    if table.unit != "word":
        raise InputError("masking by pmi_span needs n-grams of words; the importance it names has the unit wordpiece")
    chosen = collocations(table)
    if not any(units.any() for units in chosen):
        raise InputError(f"no n-gram of the collection occurs {SEEN} times; masking by pmi_span needs more text")
    words, segments, _ = ngrams.words_of(tokens, "word")  # by the numbers that the table has counted them by
    if len(words) != table.totals[0]:
        raise InputError(f"{importance} has counts of {table.totals[0]:,} words, the tokens are {len(words):,}")
    units, offsets = np.zeros(len(words), bool), np.cumsum([0, *map(len, table.keys)])
    known = np.concatenate(table.keys), np.concatenate(chosen), offsets
    _segment(words, segments, len(table.occurrences), *known, units)
    first = tokens.word_starts[tokens.ids]
    edges = ngrams.segment_edges(tokens)
    first[edges[edges < len(first)]] = True
    begins = np.zeros(len(first), np.float16)
    begins[first] = units
    return begins


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces by going through the units in random order, as for whole words: bool [B, n]."""
    chosen = np.zeros(batch.ids.shape, bool)
    order = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    choose(order, batch.importance > 0, batch.candidates, budget(batch.candidates, side.ratio), chosen)
    return chosen


def collocations(table: Table) -> list[np.ndarray]:
    """Return which n-grams of the table are units, per order from 2: bool [rows]."""
    values = pmi(table)
    ranked, words = [], []
    for order, (pmis, counts) in enumerate(zip(values, table.counts, strict=True), 2):
        rows = np.flatnonzero(counts >= SEEN)
        rows = rows[np.argsort(-pmis[rows], kind="stable")]
        ranked.append(rows)
        words.append(np.concatenate([[0], np.cumsum(counts[rows].astype(np.int64) * order)]))
    quotas = [2.0**-order for order in range(1, len(ranked))] + [2.0 ** -(len(ranked) - 1)]
    low, high = 0, int(max(len(rows) / quota for rows, quota in zip(ranked, quotas, strict=True)))
    while low < high:  # the longest list that covers no more than it may
        size = (low + high + 1) // 2
        covered = sum(sums[min(int(size * quota), len(sums) - 1)] for sums, quota in zip(words, quotas, strict=True))
        low, high = (size, high) if covered <= COVERED * table.totals[0] else (low, size - 1)
    chosen = [np.zeros(len(counts), bool) for counts in table.counts]
    for rows, quota, into in zip(ranked, quotas, chosen, strict=True):
        into[rows[: int(low * quota)]] = True
    return chosen


def pmi(table: Table) -> list[np.ndarray]:
    """PMI of every n-gram of the table, equation 3 of the paper, per order from 2: float64 [rows].

    log p(w_1 .. w_n) less the largest sum of log p over the pieces of any way of cutting it into two pieces or more.
    All parts of an n-gram that is repeated are repeated, and so in the table.
    """
    size = np.uint64(len(table.occurrences))
    log_p = [np.log(np.maximum(1, table.occurrences)) - np.log(table.totals[0])]
    totals = np.maximum(1, table.totals[1:])  # of the longest n-grams there may be none
    log_p += [np.log(array) - np.log(total) for array, total in zip(table.counts, totals, strict=True)]
    best, pmis = [log_p[0]], []  # of all ways of cutting, the whole included
    before: list[list[np.ndarray]] = []  # per length of the prefix: (rows of the prefix, of the rest), one order less
    for order, keys in enumerate(table.keys, 2):
        prefix, last = (array.astype(np.int64) for array in np.divmod(np.asarray(keys), size))
        heads, tails = [prefix], [last]  # cut before the last word
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
    # From the left, at each word the longest collocation that begins there; `offsets` of the orders among the keys.
    longest = len(offsets)  # the highest order
    for segment in range(len(segments) - 1):
        place, end = segments[segment], segments[segment + 1]
        while place < end:
            units[place] = True
            row, reach = np.int64(words[place]), place + 1
            for next_ in range(place + 1, min(end, place + longest)):
                first, last = offsets[next_ - place - 1], offsets[next_ - place]
                key = np.uint64(row) * np.uint64(size) + np.uint64(words[next_])
                row = np.searchsorted(keys[first:last], key)
                if first + row == last or keys[first + row] != key:
                    break
                if chosen[first + row]:
                    reach = next_ + 1
            place = reach
