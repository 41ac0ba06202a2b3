"""Exact n-gram counts at every position, compiled: the kernels of `cdmae.importance.ngrams`.

An n-gram's key is ``number of its first n-1 words x V + last word``: exact for any vocabulary,
without strings and without collisions. If the first or the last n-1 words of an n-gram occur once,
so does it, and it need not be counted.

Keys are spread over partitions by a hash of the whole key (the commonest word alone begins 5 % of
the bigrams), so that a partition's table fits the cache. A partition keeps the order of the text:
after it is counted, the counts stand where the keys stood, and one more walk over the text collects
them, partition by partition, in order. Nothing is looked up, nothing is written at random, and the
number of threads changes no bit. No processor follows so many streams by itself: each read and each
write asks for its partition's next cache line, which makes both walks up to three times as fast.

W words, S segments (titles and texts; no n-gram crosses from one to the next), V words in the
vocabulary.
"""

# ruff: noqa: ANN001, ANN201 (numba infers the types)
from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled, prefetch_to_read, prefetch_to_write

MIX = np.uint64(0x9E3779B97F4A7C15)
BLOCK = 4096
LINE = 8  # keys of a cache line
COUNT = np.uint64(
    0xFFFFFFFF
)  # of an entry: its number is in the upper, its count in the lower half


@compiled
def mix(key):
    """Spread the bits of a key over 64 bits, one to one."""
    key = (key ^ (key >> np.uint64(32))) * MIX
    return key ^ (key >> np.uint64(29))


# --- words ----------------------------------------------------------------------------------------


@compiled
def count_words(ids, edges, first, last, word_starts, lengths):
    """Write the words in each of the segments `first` to `last` to `lengths` [S].

    ids [T]; edges int64 [S + 1].
    """
    for segment in range(first, last):
        words = 0
        for place in range(edges[segment], edges[segment + 1]):
            words += place == edges[segment] or word_starts[ids[place]]
        lengths[segment] = words


@compiled
def number_words(ids, edges, first, last, word_starts, size, segments, words):
    """Assign numbers to the words of some segments: ids to single word-pieces, then longer words.

    The segments are `first` to `last`; longer words have numbers from ``size`` on.

    size: the number of word-pieces; segments int64 [S + 1]: edges in words; words uint32 [W],
    written. Returns the keys ``number of the word without its last piece x size + last piece`` of
    the numbers ``size`` and up, uint64.
    """
    slots = np.zeros(1 << 13, np.uint64)  # 1 + a key, and beside it its number: one cache line
    keys = np.empty(1 << 11, np.uint64)
    known = 0
    for segment in range(first, last):
        written = segments[segment]
        place, end = edges[segment], edges[segment + 1]
        while place < end:
            number = np.uint64(ids[place])
            place += 1
            while place < end and not word_starts[ids[place]]:
                key = number * np.uint64(size) + np.uint64(ids[place])
                slot = find(slots, key)
                if not slots[slot]:
                    if known == len(keys):
                        keys = np.concatenate((keys, np.empty_like(keys)))
                        slots = grow(slots)
                        slot = find(slots, key)
                    keys[known] = key
                    slots[slot] = key + np.uint64(1)
                    slots[slot + 1] = np.uint64(size + known)
                    known += 1
                number = slots[slot + 1]
                place += 1
            words[written] = number
            written += 1
    return keys[:known].copy()


@compiled
def find(slots, key):
    """Return the place of a key in a table, or where it should be put."""
    mask = len(slots) - 1
    slot = np.int64(mix(key) & np.uint64(mask - 1))  # an even place
    while slots[slot] and slots[slot] != key + np.uint64(1):
        slot = (slot + 2) & mask
    return slot


@compiled
def grow(slots):
    """Copy a table to one with twice the room."""
    larger = np.zeros(2 * len(slots), np.uint64)
    for old in range(0, len(slots), 2):
        if slots[old]:
            slot = find(larger, slots[old] - np.uint64(1))
            larger[slot] = slots[old]
            larger[slot + 1] = slots[old + 1]
    return larger


@compiled
def merge_words(size, keys, more):
    """Merge the words `keys` with later words `more`; return all keys, and numbers for `more`."""
    slots = np.zeros(1 << 13, np.uint64)
    while len(slots) < 4 * (len(keys) + len(more)):
        slots = np.zeros(2 * len(slots), np.uint64)
    joined = np.empty(len(keys) + len(more), np.uint64)
    for index in range(len(keys)):
        joined[index] = keys[index]
        slot = find(slots, keys[index])
        slots[slot] = keys[index] + np.uint64(1)
        slots[slot + 1] = np.uint64(size + index)
    known = len(keys)
    numbers = np.empty(len(more), np.uint32)
    for index in range(len(more)):
        prefix, last = more[index] // np.uint64(size), more[index] % np.uint64(size)
        if prefix >= np.uint64(size):
            prefix = np.uint64(numbers[prefix - np.uint64(size)])
        key = prefix * np.uint64(size) + last
        slot = find(slots, key)
        if not slots[slot]:
            slots[slot] = key + np.uint64(1)
            slots[slot + 1] = np.uint64(size + known)
            joined[known] = key
            known += 1
        numbers[index] = slots[slot + 1]
    return joined[:known].copy(), numbers


@compiled
def renumber(words, size, numbers):
    """Replace the numbers ``size`` and up in `words` by `numbers`."""
    for place in range(len(words)):
        if words[place] >= size:
            words[place] = numbers[words[place] - size]


@compiled
def count_numbers(words, occurrences):
    """Add the occurrences of each word to `occurrences` [V]."""
    for place in range(len(words)):
        occurrences[words[place]] += 1


@compiled
def spread(words, occurrences, counts):
    """Write the occurrences of the word at each position to `counts` [W]."""
    for place in range(len(words)):
        counts[place] = occurrences[words[place]]


# --- n-grams --------------------------------------------------------------------------------------
# The walks over the text take no branch that depends on the data, since guessing one wrong costs
# more than the work it saves: n-grams that need no counting have two partitions of their own, whose
# one entry does not move.

OUTSIDE, ONCE = (
    0,
    1,
)  # the counts in those two partitions: beyond the segment's end, and certainly met once


@compiled
def room_left(segments, first, last, window, left):
    """Write the number of words to each segment's end, at most `window`, to `left` uint8 [W]."""
    for segment in range(first, last):
        end = segments[segment + 1]
        for place in range(segments[segment], end):
            left[place] = end - place if end - place < window else window


@compiled
def partition(order, words, vocabulary, numbers, shorter, left, shift, where, sizes):
    """Find the partition of the n-gram at each position of a stretch of text.

    words, numbers, shorter (number and count of the (n-1)-gram), left: the stretch and what follows
    it; where uint16: the stretch, written; sizes int64 [partitions + 2] is added to.
    """
    outside = len(sizes) - 2
    last = words[order - 1 :]
    following = shorter[1:]
    length = len(where) if len(where) < len(last) else len(last)
    for block in range(0, length, BLOCK):
        stop = BLOCK if block + BLOCK < length else length - block
        numbers_, last_, shorter_ = numbers[block:], last[block:], shorter[block:]
        following_, left_, where_ = following[block:], left[block:], where[block:]
        for place in range(stop):
            key = np.uint64(numbers_[place]) * np.uint64(vocabulary) + np.uint64(last_[place])
            inside = left_[place] >= order
            counted = inside & (shorter_[place] > 1) & (following_[place] > 1)
            chosen = (mix(key) >> np.uint64(shift)) if counted else np.uint64(outside + inside)
            where_[place] = chosen
        for place in range(stop):
            sizes[where_[place]] += 1
    for place in range(length, len(where)):
        where[place] = outside


@compiled
def scatter(order, words, vocabulary, numbers, where, ends, entries):
    """Write the keys to where each lies among the `entries`.

    ends uint64 [partitions + 2]: where the next key of each partition goes, moved on, but for the
    last two.
    """
    last = words[order - 1 :]
    partitions = len(ends) - 2
    for place in range(len(where) if len(where) < len(last) else len(last)):
        partition = where[place]
        free = ends[partition]
        prefetch_to_write(entries, np.int64(free) + LINE)
        entries[free] = np.uint64(numbers[place]) * np.uint64(vocabulary) + np.uint64(last[place])
        ends[partition] = free + np.uint64(partition < partitions)


@compiled
def collect(where, ends, entries, bases, numbers, counts):
    """Copy each n-gram's number and count from its entry to `numbers` and `counts`.

    bases uint64 [partitions + 2]: what to add to the numbers of each partition.
    """
    partitions = len(ends) - 2
    entries[ends[partitions]] = OUTSIDE
    entries[ends[partitions + 1]] = ONCE
    for place in range(len(where)):
        partition = where[place]
        at = ends[partition]
        prefetch_to_read(entries, np.int64(at) + LINE)
        entry = entries[at]
        ends[partition] = at + np.uint64(partition < partitions)
        numbers[place] = (entry >> np.uint64(32)) + bases[partition]
        counts[place] = entry & COUNT


@compiled
def count_partitions(entries, begins, shift):
    """Count the keys of some partitions, and replace each by its number and its count.

    begins int64 [partitions + 1]: where each lies in `entries`. n-grams that occur at least twice
    are numbered as they are met. Returns their keys and counts.
    """
    largest = 0
    for partition in range(len(begins) - 1):
        length = begins[partition + 1] - begins[partition]
        largest = length if length > largest else largest
    table = np.empty(2 * room(largest), np.uint64)  # a key, and beside it its number and count
    repeated = np.empty(largest // 2, np.int64)
    kept_keys = np.empty((begins[-1] - begins[0]) // 2, np.uint64)
    kept_counts = np.empty((begins[-1] - begins[0]) // 2, np.uint32)
    kept = 0
    for partition in range(len(begins) - 1):
        mask = 2 * room(begins[partition + 1] - begins[partition]) - 1
        for slot in range(mask + 1):
            table[slot] = np.uint64(0)
        before = kept
        for entry in range(begins[partition], begins[partition + 1]):
            key = entries[entry]
            slot = np.int64((mix(key) << np.uint64(64 - shift)) >> np.uint64(32)) * 2 & mask
            while table[slot + 1] and table[slot] != key:
                slot = (slot + 2) & mask
            table[slot] = key
            table[slot + 1] += np.uint64(1)
            if table[slot + 1] == np.uint64(2):
                table[slot + 1] = np.uint64(kept) << np.uint64(32) | np.uint64(2)
                kept_keys[kept] = key
                repeated[kept - before] = slot
                kept += 1
            entries[entry] = slot
        for index in range(before, kept):
            kept_counts[index] = table[repeated[index - before] + 1] & COUNT
        for entry in range(begins[partition], begins[partition + 1]):
            entries[entry] = table[np.int64(entries[entry]) + 1]
    return kept_keys[:kept].copy(), kept_counts[:kept].copy()


@compiled
def room(keys):
    """Return the slots of a hash table: a power of two, at most two thirds of them used."""
    size = 16
    while size < keys + keys // 2:
        size *= 2
    return size
