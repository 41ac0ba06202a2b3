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
OFFSET, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a


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
    # A slot is a chunk's hash and, beside it, its number + 1.
    numbers = np.empty(offsets[-1] - offsets[0], np.int32)
    counts = np.zeros(len(offsets) - 1, np.int64)
    met = 0
    for segment in range(len(offsets) - 1):
        before = met
        place, last = offsets[segment], offsets[segment + 1]
        while place < last:
            start = place
            kind = kinds[data[place]]
            place += 1
            if kind == BLANK:
                continue
            tag = (OFFSET ^ np.uint64(data[start])) * PRIME  # FNV-1a
            while kind == LETTER and place < last and kinds[data[place]] == LETTER:
                tag = (tag ^ np.uint64(data[place])) * PRIME
                place += 1
            number = np.int64(data[start])
            if place - start > 1 or number >= ONE_BYTE:
                slot = _slot(slots, tag, data, start, place, letters, edges)
                number = np.int64(slots[slot + 1]) - 1
                if number < 0:
                    number = known
                    edges[known + 1] = edges[known] + place - start
                    letters[edges[known] : edges[known + 1]] = data[start:place]
                    known += 1
                    slots[slot], slots[slot + 1] = tag, known
                    slots = _grown(slots) if 4 * known > len(slots) else slots
            numbers[met] = number
            met += 1
        counts[segment] = met - before
    return numbers[:met].copy(), counts, known, slots


@compiled
def _slot(slots, tag, data, start, end, letters, edges):  # noqa: ANN001, ANN202
    """Return the slot of a chunk, ``data[start:end]``, or the free one where it belongs."""
    slot = np.int64(tag << np.uint64(1)) & (len(slots) - 1)
    while slots[slot + 1]:
        if slots[slot] == tag:
            letter = edges[np.int64(slots[slot + 1]) - 1]
            ahead = start
            while ahead < end and letters[letter] == data[ahead]:
                letter, ahead = letter + 1, ahead + 1
            if ahead == end and letter == edges[slots[slot + 1]]:
                break
        slot = (slot + 2) & (len(slots) - 1)
    return slot


@compiled
def _grown(slots):  # noqa: ANN001, ANN202
    larger = np.zeros(2 * len(slots), np.uint64)
    for old in range(0, len(slots), 2):
        if slots[old + 1]:
            slot = np.int64(slots[old] << np.uint64(1)) & (len(larger) - 1)
            while larger[slot + 1]:
                slot = (slot + 2) & (len(larger) - 1)
            larger[slot : slot + 2] = slots[old : old + 2]
    return larger


@compiled
def gather(numbers, counts, edges, pieces):  # noqa: ANN001, ANN201
    """Return the word-pieces of chunks one after the other, and how many each segment has, int64 [S].

    Chunk c has ``pieces[edges[c]:edges[c + 1]]``; a segment has the next of `counts` [S] chunks of `numbers`.
    """
    ids = np.empty((edges[1:] - edges[:-1])[numbers].sum(), pieces.dtype)
    lengths = np.zeros(len(counts), np.int64)
    met = written = 0
    for segment in range(len(counts)):
        before = written
        for number in numbers[met : met + counts[segment]]:
            for place in range(edges[number], edges[number + 1]):
                ids[written] = pieces[place]
                written += 1
        met += counts[segment]
        lengths[segment] = written - before
    return ids, lengths
