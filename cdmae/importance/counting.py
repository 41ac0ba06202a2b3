"""Exact n-gram counts at every position, compiled: the kernels of `cdmae.importance.ngrams`.

An n-gram's key is ``number of its first n-1 words x V + last word``: exact for any vocabulary,
without strings and without collisions. If the first or the last n-1 words of an n-gram occur only
once, the n-gram occurs only once, too, and need not be counted.

Keys are spread over partitions by a hash of the whole key (the commonest word alone begins 5 % of
the bigrams): a partition's table therefore fits the cache. A partition keeps the order of the text.
After it is counted, its counts replace its keys, and a second walk over the text reads them in
order, partition by partition. There are no random reads or writes, and the result does not depend
on the number of threads. No processor prefetches this many streams by itself, so each read and each
write prefetches its partition's next cache line. This makes both walks up to three times as fast.

W words, S segments (titles and texts; no n-gram crosses from one to the next), V words in the
vocabulary.
"""

# ruff: noqa: ANN001, ANN201 (numba infers the types)
from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled, prefetch_to_read, prefetch_to_write

MIX = np.uint64(0x9E3779B97F4A7C15)
BLOCK = 4096
LINE = 8  # keys per cache line
COUNT = np.uint64(0xFFFFFFFF)  # the lower half of an entry; its upper half is a number


@compiled
def mix(key):
    """Spread the bits of a key over 64 bits, one to one."""
    key = (key ^ (key >> np.uint64(32))) * MIX
    return key ^ (key >> np.uint64(29))


# --- words ----------------------------------------------------------------------------------------


@compiled
def count_words(ids, edges, first, last, word_starts, lengths):
    """Write the number of words in the segments `first` to `last` to `lengths` [S].

    ids [T]; edges int64 [S + 1].
    """
    for segment in range(first, last):
        words = 0
        for i in range(edges[segment], edges[segment + 1]):
            words += i == edges[segment] or word_starts[ids[i]]
        lengths[segment] = words


@compiled
def no_words():
    """Return an empty hash table of pairs (1 + key, number), and an array for keys."""
    return np.zeros(1 << 13, np.uint64), np.empty(1 << 11, np.uint64)


@compiled
def number_words(ids, edges, first, last, word_starts, size, segments, words):
    """Assign numbers to the words of the segments `first` to `last`; return the keys of long words.

    A word of a single word-piece has the number of that piece. Longer words are numbered from
    ``size`` on, in the order of the text. Their keys, uint64, are ``number of the word without its
    last piece x size + last piece``.

    size: the number of word-pieces. segments int64 [S + 1]: edges in words. words uint32 [W]:
    written.
    """
    slots, keys = no_words()
    used = 0
    for segment in range(first, last):
        written = segments[segment]
        i = edges[segment]
        end = edges[segment + 1]
        while i < end:
            number = np.uint64(ids[i])
            i += 1
            while i < end and not word_starts[ids[i]]:
                key = number * np.uint64(size) + np.uint64(ids[i])
                slot = find(slots, key)
                if not slots[slot]:
                    if used == len(keys):
                        keys = np.concatenate((keys, np.empty_like(keys)))
                        slots = grow(slots)
                        slot = find(slots, key)
                    keys[used] = key
                    slots[slot] = key + np.uint64(1)
                    slots[slot + 1] = np.uint64(size + used)
                    used += 1
                number = slots[slot + 1]
                i += 1
            words[written] = number
            written += 1
    return keys[:used].copy()


@compiled
def find(slots, key):
    """Return the slot of a key in a hash table, or the free slot where it belongs."""
    mask = len(slots) - 1
    slot = np.int64(mix(key) & np.uint64(mask - 1))  # an even index
    while slots[slot] and slots[slot] != key + np.uint64(1):
        slot = (slot + 2) & mask
    return slot


@compiled
def grow(slots):
    """Copy a hash table to a table of twice its size."""
    larger = np.zeros(2 * len(slots), np.uint64)
    for old in range(0, len(slots), 2):
        if slots[old]:
            slot = find(larger, slots[old] - np.uint64(1))
            larger[slot] = slots[old]
            larger[slot + 1] = slots[old + 1]
    return larger


@compiled
def merge_words(size, slots, keys, used, more):
    """Merge the words `more` of a later text with the first `used` words of `keys`.

    Returns the enlarged hash table, the keys, the number of keys, and the numbers of the words in
    `more`, uint32.
    """
    numbers = np.empty(len(more), np.uint32)
    for index in range(len(more)):
        prefix = more[index] // np.uint64(size)
        last = more[index] % np.uint64(size)
        if prefix >= np.uint64(size):
            prefix = np.uint64(numbers[prefix - np.uint64(size)])
        key = prefix * np.uint64(size) + last
        slot = find(slots, key)
        if not slots[slot]:
            if used == len(keys):
                keys = np.concatenate((keys, np.empty_like(keys)))
                slots = grow(slots)
                slot = find(slots, key)
            keys[used] = key
            slots[slot] = key + np.uint64(1)
            slots[slot + 1] = np.uint64(size + used)
            used += 1
        numbers[index] = slots[slot + 1]
    return slots, keys, used, numbers


@compiled
def renumber(words, size, numbers):
    """Replace each number in `words` that is at least ``size`` with its entry in `numbers`."""
    for i in range(len(words)):
        if words[i] >= size:
            words[i] = numbers[words[i] - size]


@compiled
def count_numbers(words, occurrences):
    """Add the occurrences of each word to `occurrences` [V]."""
    for i in range(len(words)):
        occurrences[words[i]] += 1


@compiled
def spread(words, occurrences, counts):
    """Write the occurrences of the word at each position to `counts` [W]."""
    for i in range(len(words)):
        counts[i] = occurrences[words[i]]


# --- n-grams --------------------------------------------------------------------------------------
# The walks over the text do not branch on the data, since a mispredicted branch costs more than the
# work that it saves. N-grams that need no counting go to two separate partitions, each with a
# single entry that is overwritten.

# the counts in these two partitions: 0 beyond the segment's end, and 1 for unique n-grams
OUTSIDE = 0
ONCE = 1


@compiled
def room_left(segments, first, last, window, left):
    """Write the number of words to each segment's end, at most `window`, to `left` uint8 [W]."""
    for segment in range(first, last):
        end = segments[segment + 1]
        for i in range(segments[segment], end):
            left[i] = min(end - i, window)


@compiled
def partition(order, words, vocabulary, numbers, shorter, left, shift, where, sizes):
    """Find the partition of the n-gram at each position of a stretch of text.

    words, numbers, shorter (number and count of the (n-1)-gram), left: the stretch and the text
    after it; where uint16: the stretch, written; sizes int64 [partitions + 2]: updated.
    """
    outside = len(sizes) - 2
    last = words[order - 1 :]
    following = shorter[1:]
    length = min(len(where), len(last))
    for block in range(0, length, BLOCK):
        stop = min(BLOCK, length - block)
        block_numbers = numbers[block:]
        block_last = last[block:]
        block_shorter = shorter[block:]
        block_following = following[block:]
        block_left = left[block:]
        block_where = where[block:]
        for i in range(stop):
            key = np.uint64(block_numbers[i]) * np.uint64(vocabulary) + np.uint64(block_last[i])
            inside = block_left[i] >= order
            counted = inside & (block_shorter[i] > 1) & (block_following[i] > 1)
            by_hash = mix(key) >> np.uint64(shift)
            block_where[i] = by_hash if counted else np.uint64(outside + inside)
        for i in range(stop):
            sizes[block_where[i]] += 1
    for i in range(length, len(where)):
        where[i] = outside


@compiled
def scatter(order, words, vocabulary, numbers, where, ends, entries):
    """Write each key to its partition among the `entries`.

    ends uint64 [partitions + 2]: the index of each partition's next key; all but the last two are
    advanced.
    """
    last = words[order - 1 :]
    partitions = len(ends) - 2
    for i in range(min(len(where), len(last))):
        partition = where[i]
        free = ends[partition]
        prefetch_to_write(entries, np.int64(free) + LINE)
        entries[free] = np.uint64(numbers[i]) * np.uint64(vocabulary) + np.uint64(last[i])
        ends[partition] = free + np.uint64(partition < partitions)


@compiled
def collect(where, ends, entries, bases, numbers, counts):
    """Copy each n-gram's number and count from its entry to `numbers` and `counts`.

    bases uint64 [partitions + 2]: added to the numbers of each partition.
    """
    partitions = len(ends) - 2
    entries[ends[partitions]] = OUTSIDE
    entries[ends[partitions + 1]] = ONCE
    for i in range(len(where)):
        partition = where[i]
        index = ends[partition]
        prefetch_to_read(entries, np.int64(index) + LINE)
        entry = entries[index]
        ends[partition] = index + np.uint64(partition < partitions)
        numbers[i] = (entry >> np.uint64(32)) + bases[partition]
        counts[i] = entry & COUNT


@compiled
def count_partitions(entries, begins, shift):
    """Count the keys of several partitions, and replace each key with its number and its count.

    begins int64 [partitions + 1]: the edges of the partitions in `entries`. N-grams that occur at
    least twice are numbered in the order of their second occurrences. Returns their keys and
    counts.
    """
    largest = 0
    for partition in range(len(begins) - 1):
        largest = max(largest, begins[partition + 1] - begins[partition])
    table = np.empty(2 * room(largest), np.uint64)  # pairs: a key, and its number and count
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
    """Return the number of slots for a hash table: a power of two, at most two thirds used."""
    size = 16
    while size < keys + keys // 2:
        size *= 2
    return size
