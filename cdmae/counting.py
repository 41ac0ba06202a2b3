"""Exact n-gram counts at every position, compiled: the kernels of `cdmae.ngrams`.

An n-gram's key is ``number of its first n-1 words x V + last word``: exact for any vocabulary, without strings and
without collisions. Counts are never looked up afterwards; the position travels with the key, and the count is written
back to it. If the first or the last n-1 words of an n-gram occur once, so does it, and it need not be counted.
Keys are spread over partitions by a hash of the whole key, so that one partition's table fits the cache; partitions
keep the order of positions, so that the numbering, too, is the same for any number of threads.

W words, S segments (titles and texts; no n-gram crosses from one to the next), E edges between segments.
"""

# ruff: noqa: ANN001, ANN201, ANN202 (numba infers the types)
from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled

MIX = np.uint64(0x9E3779B97F4A7C15)


@compiled
def mix(key):
    """Spread the bits of a key over 64 bits, one to one."""
    key = (key ^ (key >> np.uint64(32))) * MIX
    return key ^ (key >> np.uint64(29))


@compiled
def words_of(ids, edges, word_starts, size):
    """Number the words of word-pieces: a word of one piece has the piece's id, others ``size`` and up, as met.

    ids [T]; edges int64 [S + 1], segments in pieces; size: the number of word-pieces. Returns words uint32 [W],
    segments in words int64 [S + 1], and the keys ``number of the word without its last piece x size + last piece`` of
    the numbers ``size`` and up, uint64.
    """
    words = np.empty(len(ids), np.uint32)
    segments = np.zeros(len(edges), np.int64)
    slots = np.zeros(1 << 12, np.uint32)  # 1 + the place of a key among the keys; 0 is empty
    keys = np.empty(1 << 11, np.uint64)
    known = 0
    written = 0
    for segment in range(len(edges) - 1):
        begin, end = edges[segment], edges[segment + 1]
        place = begin
        while place < end:
            number = np.uint64(ids[place])
            place += 1
            while place < end and not word_starts[ids[place]]:
                key = number * np.uint64(size) + np.uint64(ids[place])
                slot = np.int64(mix(key) & np.uint64(len(slots) - 1))
                while slots[slot] and keys[slots[slot] - 1] != key:
                    slot = (slot + 1) & (len(slots) - 1)
                if not slots[slot]:
                    keys[known] = key
                    known += 1
                    slots[slot] = known
                    number = np.uint64(size + known - 1)
                    if known == len(keys):
                        keys = np.concatenate((keys, np.empty_like(keys)))
                        slots = np.zeros(2 * len(slots), np.uint32)
                        for old in range(known):
                            slot = np.int64(mix(keys[old]) & np.uint64(len(slots) - 1))
                            while slots[slot]:
                                slot = (slot + 1) & (len(slots) - 1)
                            slots[slot] = old + 1
                else:
                    number = np.uint64(size) + np.uint64(slots[slot] - 1)
                place += 1
            words[written] = number
            written += 1
        segments[segment + 1] = written
    return words[:written].copy(), segments, keys[:known].copy()


@compiled
def count_words(words, counts):
    """Add the occurrences of each word of `words` to `counts` [vocabulary]."""
    for word in words:
        counts[word] += 1


@compiled
def spread_words(words, occurrences, counts):
    """Write the occurrences of the word at each position to `counts` [W]."""
    for place in range(len(words)):
        counts[place] = occurrences[words[place]]


@compiled
def histogram(order, segments, first, last, words, vocabulary, numbers, shorter, counts, shift, sizes):
    """Count the keys per partition for segments `first` to `last`, and write the counts that need no counting.

    numbers, shorter: number and count of the (n-1)-gram at each position; counts: 0 where the n-gram would leave its
    segment, 1 where one of its (n-1)-grams occurs once; sizes int64 [partitions] is added to. Returns the number of
    n-grams.
    """
    total = 0
    for segment in range(first, last):
        inside = max(segments[segment], segments[segment + 1] - order + 1)
        total += inside - segments[segment]
        for place in range(segments[segment], inside):
            counts[place] = 1
            if shorter[place] > 1 and shorter[place + 1] > 1:
                key = np.uint64(numbers[place]) * np.uint64(vocabulary) + np.uint64(words[place + order - 1])
                sizes[mix(key) >> np.uint64(shift)] += 1
        for place in range(inside, segments[segment + 1]):
            counts[place] = 0
    return total


@compiled
def scatter(order, segments, first, last, words, vocabulary, numbers, shorter, shift, low, high, ends, keys, places):
    """Copy the keys of partitions `low` to `high` and their positions to where each partition lies.

    ends int64 [partitions]: where the next key of each partition goes, moved on.
    """
    for segment in range(first, last):
        for place in range(segments[segment], segments[segment + 1] - order + 1):
            if shorter[place] > 1 and shorter[place + 1] > 1:
                key = np.uint64(numbers[place]) * np.uint64(vocabulary) + np.uint64(words[place + order - 1])
                partition = np.int64(mix(key) >> np.uint64(shift))
                if low <= partition < high:
                    end = ends[partition]
                    keys[end] = key
                    places[end] = place
                    ends[partition] = end + 1


@compiled
def count_partition(keys, places, shift, base, numbers, counts):
    """Count the keys of one partition and write counts and numbers back to their positions.

    keys uint64 [E] (overwritten), places uint32 [E]. n-grams that occur at least twice are numbered from `base` as they
    are met. Returns their keys and counts.
    """
    size = 16
    while size < 2 * len(keys):
        size *= 2
    table = np.empty(size, np.uint64)
    seen = np.zeros(size, np.uint32)
    repeated = 0
    for entry in range(len(keys)):
        key = keys[entry]
        slot = np.int64((mix(key) << np.uint64(64 - shift)) >> np.uint64(40)) & (size - 1)
        while seen[slot] and table[slot] != key:
            slot = (slot + 1) & (size - 1)
        table[slot] = key
        seen[slot] += 1
        repeated += seen[slot] == 2
        keys[entry] = slot
    kept_keys = np.empty(repeated, np.uint64)
    kept_counts = np.empty(repeated, np.uint32)
    number_of = np.full(size, -1, np.int64)
    kept = 0
    for entry in range(len(keys)):
        slot = keys[entry]
        count = seen[slot]
        counts[places[entry]] = count
        if count > 1:
            if number_of[slot] < 0:
                number_of[slot] = base + kept
                kept_keys[kept] = table[slot]
                kept_counts[kept] = count
                kept += 1
            numbers[places[entry]] = number_of[slot]
    return kept_keys, kept_counts
