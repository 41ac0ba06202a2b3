"""Text cut into chunks whose word-pieces do not depend on what stands around them, each distinct one kept once.

BERT's tokenizers split text at blanks and make every ASCII punctuation mark a word of its own, so that the stretches in
between can be tokenised one by one. (White space that is a control character to BERT is no blank: it removes such
characters before it splits. Punctuation and white space beyond ASCII stay inside their chunk, and the tokenizer splits
them.)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cdmae.compiled import compiled
from cdmae.tokens.vocabulary import BLANKS

MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
LETTER, BLANK, MARK = 0, 1, 2
ONE_BYTE = 128  # chunks of one ASCII character have its code as their number
PRIME, GOLDEN = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
SHORT = 7  # bytes
LONG = np.uint64(1 << 63)


def kinds(marks: bool) -> np.ndarray:
    """Return what each byte of UTF-8 is: uint8 [256]; without `marks` text is cut at blanks only."""
    kinds_of = np.full(256, LETTER, np.uint8)
    kinds_of[list(BLANKS.encode())] = BLANK
    if marks:
        kinds_of[list(MARKS.encode())] = MARK
    return kinds_of


class Chunks:
    """The distinct chunks met so far: number c is ``letters[edges[c]:edges[c + 1]]``, UTF-8."""

    def __init__(self) -> None:
        """Start with the single ASCII characters."""
        self.known = ONE_BYTE
        self.letters = np.arange(ONE_BYTE, dtype=np.uint8)
        self.edges = np.arange(ONE_BYTE + 1)
        self.slots = np.zeros(1 << 12, np.uint64)

    def cut(self, data: np.ndarray, offsets: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cut segments, ``data[offsets[s]:offsets[s + 1]]``, and remember what is new.

        Returns the numbers of the chunks, int32, and how many each segment has, int64 [S].
        """
        size = int(offsets[-1] - offsets[0])
        self.letters = _with_room(self.letters, self.edges[self.known], size)
        self.edges = _with_room(self.edges, self.known + 1, size)
        numbers, counts, self.known, self.slots = _cut(
            data, offsets, kinds, self.slots, self.letters, self.edges, self.known
        )
        return numbers, counts

    def texts(self, first: int) -> list[str]:
        """Return the chunks from number `first` on."""
        edges = self.edges[first : self.known + 1].tolist()
        letters = self.letters[edges[0] : edges[-1]].tobytes()
        return [letters[a - edges[0] : b - edges[0]].decode() for a, b in zip(edges[:-1], edges[1:], strict=True)]


def _with_room(array: np.ndarray, used: int, more: int) -> np.ndarray:
    if used + more <= len(array):
        return array
    larger = np.empty(2 * (used + more), array.dtype)
    larger[:used] = array[:used]
    return larger


def segments(titles: pa.Array, texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the UTF-8 bytes of titles and texts in turn, uint8 [.], and their edges, int64 [2 P + 1]."""
    columns = [column.cast(pa.large_string()).fill_null("") for column in (titles, texts)]
    turns = np.arange(2 * len(titles)).reshape(2, -1).T.ravel()
    joined = pa.concat_arrays(columns).take(pa.array(turns))
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset : joined.offset + len(joined) + 1]
    data = joined.buffers()[2]
    return (np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)), offsets


@compiled
def _cut(data, offsets, kinds, slots, letters, edges, known):  # noqa: ANN001, ANN202
    # A slot is a chunk's tag and, beside it, its number + 1. Up to seven bytes are their own tag, with a 1 in front;
    # longer chunks have a hash as tag, and are compared letter by letter.
    numbers = np.empty(offsets[-1] - offsets[0], np.int32)
    counts = np.zeros(len(offsets) - 1, np.int64)
    met = 0
    for segment in range(len(offsets) - 1):
        before = met
        place, last = offsets[segment], offsets[segment + 1]
        while place < last:
            start = place
            letter = data[place]
            kind = kinds[letter]
            place += 1
            if kind == BLANK:
                continue
            tag = np.uint64(256) | np.uint64(letter)
            if kind == LETTER:
                while place < last and kinds[data[place]] == LETTER:
                    tag = tag << np.uint64(8) | np.uint64(data[place])
                    place += 1
            length = place - start
            if length == 1 and letter < ONE_BYTE:
                numbers[met] = letter
                met += 1
                continue
            if length > SHORT:
                tag = np.uint64(length)
                for ahead in range(start, place):
                    tag = (tag ^ np.uint64(data[ahead])) * PRIME  # FNV-1a
                tag = tag | LONG
            mask = len(slots) - 1
            slot = np.int64((tag ^ (tag >> np.uint64(32))) * GOLDEN >> np.uint64(31)) & (mask - 1)
            while slots[slot + 1]:
                if slots[slot] == tag:
                    if length <= SHORT:
                        break
                    chunk = np.int64(slots[slot + 1]) - 1
                    equal = 0
                    if edges[chunk + 1] - edges[chunk] == length:
                        while equal < length and letters[edges[chunk] + equal] == data[start + equal]:
                            equal += 1
                    if equal == length:
                        break
                slot = (slot + 2) & mask
            if not slots[slot + 1]:
                for ahead in range(length):
                    letters[edges[known] + ahead] = data[start + ahead]
                edges[known + 1] = edges[known] + length
                known += 1
                slots[slot] = tag
                slots[slot + 1] = known
                if 4 * known > len(slots):
                    numbers[met] = known - 1
                    met += 1
                    slots = _grow(slots)
                    continue
            numbers[met] = slots[slot + 1] - np.uint64(1)
            met += 1
        counts[segment] = met - before
    return numbers[:met].copy(), counts, known, slots


@compiled
def _grow(slots):  # noqa: ANN001, ANN202
    larger = np.zeros(2 * len(slots), np.uint64)
    mask = len(larger) - 1
    for old in range(0, len(slots), 2):
        if slots[old + 1]:
            tag = slots[old]
            slot = np.int64((tag ^ (tag >> np.uint64(32))) * GOLDEN >> np.uint64(31)) & (mask - 1)
            while larger[slot + 1]:
                slot = (slot + 2) & mask
            larger[slot] = tag
            larger[slot + 1] = slots[old + 1]
    return larger


@compiled
def lengths(numbers, counts, edges):  # noqa: ANN001, ANN201
    """Count the word-pieces of each segment, int64 [S], from its chunks, `counts` [S], and a chunk's `edges`."""
    sums = np.zeros(len(counts), np.int64)
    met = 0
    for segment in range(len(counts)):
        for _ in range(counts[segment]):
            sums[segment] += edges[numbers[met] + 1] - edges[numbers[met]]
            met += 1
    return sums


@compiled
def gather(numbers, edges, pieces, ids):  # noqa: ANN001, ANN201
    """Copy the word-pieces of each chunk, ``pieces[edges[c]:edges[c + 1]]``, to `ids` one after the other."""
    written = 0
    for number in numbers:
        for place in range(edges[number], edges[number + 1]):
            ids[written] = pieces[place]
            written += 1
