"""The steps of pre-training: passages in a seeded order, masked on every side.

Step s takes the passages s x batch .. (s + 1) x batch of an endless sequence: one permutation of
the collection per epoch, end to end. Order and masks are functions of (seed, epoch, passage) alone.
They need not be saved, and neither accumulation nor the number of processes changes a step's data.

Many steps are read and masked at a time, in numpy. The Python code of a single step only cuts
views.

    B passages or spans, n word-pieces of the longest one, P passages, T word-pieces
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from cdmae import masking
from cdmae.errors import InputError
from cdmae.masking import PLAIN
from cdmae.masking.noise import uniforms
from cdmae.models import ragged, sequences
from cdmae.models.ragged import Ragged, indices, starts_of
from cdmae.pretraining.batches import Masked, Step, Texts
from cdmae.training.setup import seed_of

if TYPE_CHECKING:
    from cdmae.masking import Side
    from cdmae.pretraining.further import Asked
    from cdmae.pretraining.spelling import Spelling
    from cdmae.tokens.corpus import Tokens
    from cdmae.tokens.vocabulary import Vocabulary

PASSAGES_AT_ONCE = 4096  # passages read and masked together: a few MB
MIDDLE = (0.25, 0.75)  # the part of a passage from which the cut into two spans is drawn


class Reader:
    """Read and mask the passages of pre-training steps.

    length: the maximum word-pieces of a text, without [CLS] and [SEP]. spans: texts per passage.
    store: the word-pieces of all texts, which begin with the passages. read_rows: the passages that
    are read.
    """

    def __init__(
        self,
        tokens: Tokens,
        values: dict[str, np.ndarray],
        vocabulary: Vocabulary,
        sides: dict[str, Side],
        *,
        batch: int,
        max_length: int,
        seed: int,
        asked: Asked | None = None,
        written: Sequence[Asked] = (),
        spelling: Spelling | None = None,
    ) -> None:
        """Take the word-pieces and the strategies' values.

        values: by name, float16 [T]. max_length: [CLS] and [SEP] included. asked: queries, if the
        second text of a passage is one of its queries. written: texts of all passages, one entry
        per file. With either, values are also those of the further texts. spelling: for sides that
        misspell words.
        """
        if not len(tokens):
            raise InputError("the collection has no passages to pre-train on; choose another one")
        self.tokens = tokens
        self.asked = asked
        self.written = written
        self.spelling = spelling
        further = [*written, asked] if asked else [*written]
        self.store = further[0].tokens if further else tokens
        self.read_rows = asked.passages if asked else np.arange(len(tokens))
        self.values = values
        self.vocabulary = vocabulary
        self.sides = sides
        self.batch = batch
        self.length = max_length - 2
        self.seed = seed
        self.spans = max(2 if side.next else side.spans for side in sides.values())
        self.crops = next((side.crops for side in sides.values() if side.crops), None)
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    def __len__(self) -> int:
        """Return the number of passages that are read."""
        return len(self.read_rows)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Return the number of word-pieces of every text after cutting, int64 [P], then queries."""
        longest = self.length if self.crops or self.asked else self.length * self.spans
        return np.minimum(np.diff(self.store.starts), longest)

    # --- steps ------------------------------------------------------------------------------------

    def steps(self, begin: int, end: int, *, ahead: bool = False) -> Iterator[Step]:
        """Yield the steps begin .. end - 1; with `ahead`, a thread reads ahead."""
        at_once = max(1, PASSAGES_AT_ONCE // self.batch)
        groups = [(first, min(end, first + at_once)) for first in range(begin, end, at_once)]
        if not ahead:
            for group in groups:
                yield from self.read(*group)
            return
        with ThreadPoolExecutor(1) as thread:
            pending: list[Future[list[Step]]] = []
            for group in groups:
                pending.append(thread.submit(self.read, *group))
                if len(pending) == 2:
                    yield from pending.pop(0).result()
            for last in pending:
                yield from last.result()

    def read(self, begin: int, end: int) -> list[Step]:
        """Read several steps together."""
        positions = np.arange(begin * self.batch, end * self.batch)
        epochs, rows = self.passages(positions)
        steps = positions // self.batch
        order = np.lexsort((self.lengths[rows], steps))  # sorted by length within each step
        texts = self.texts(rows[order], epochs[order])
        sides: dict[str, Masked] = {}
        for name in self.sides:
            sides[name] = self.mask(name, texts, sides)
        size = self.batch * self.spans
        cuts = [slice(first, first + size) for first in range(0, len(texts.rows), size)]
        return [
            Step({side: masked[cut] for side, masked in sides.items()}, self.spans) for cut in cuts
        ]

    def passages(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the epochs and passages at ascending positions of the endless sequence."""
        epochs, within = np.divmod(positions, len(self))
        rows = np.empty_like(positions)
        for epoch in np.unique(epochs).tolist():
            if self._order[0] != epoch:
                generator = np.random.default_rng(seed_of(self.seed, "order", epoch))
                self._order = (epoch, generator.permutation(len(self)))
            here = epochs == epoch
            rows[here] = self.read_rows[self._order[1][within[here]]]
        return epochs, rows

    # --- texts ------------------------------------------------------------------------------------

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return the passages `rows`, or two texts of each, in their epochs.

        The two are spans or crops, or the passage and one of its queries.

        Second spans have row numbers beyond the collection's, and thus other random draws.
        """
        begins = self.store.starts[rows]
        lengths = self.lengths[rows]
        if self.spans == 1:
            return Texts(rows, begins, lengths, epochs)
        if self.crops:
            return self._cropped(rows, begins, lengths, epochs, self.sides["encoder"])
        if self.asked:
            draws = uniforms(self.keys("query", epochs), rows, 1, salt=1)[:, 0]
            queries = self.asked.drawn(rows, draws)
            offsets = np.stack([np.zeros_like(begins), self.store.starts[queries] - begins], axis=1)
            sizes = np.stack([lengths, self.lengths[queries]], axis=1)
            return self._pairs(rows, begins, offsets, sizes, epochs)
        cut = self._cut(rows, begins, lengths, epochs)
        offsets = np.stack([np.zeros_like(cut), cut], axis=1)
        sizes = np.stack([cut, np.minimum(lengths - cut, self.length)], axis=1)
        return self._pairs(rows, begins, offsets, sizes, epochs)

    def _pairs(
        self,
        rows: np.ndarray,
        begins: np.ndarray,
        offsets: np.ndarray,
        sizes: np.ndarray,
        epochs: np.ndarray,
    ) -> Texts:
        """Return two texts of each passage, by their offsets and lengths [B, 2]."""
        keys = np.stack([rows, rows + len(self.tokens)], axis=1)
        return Texts(
            keys.ravel(),
            (begins[:, None] + offsets).ravel(),
            sizes.ravel(),
            np.repeat(epochs, 2),
        )

    def _cropped(
        self,
        rows: np.ndarray,
        begins: np.ndarray,
        lengths: np.ndarray,
        epochs: np.ndarray,
        side: Side,
    ) -> Texts:
        """Return two crops of each passage.

        If the second crop is the rest of the passage, its range is the whole passage, from which
        `mask` removes the first crop.
        """
        offsets, sizes = self._crops(rows, lengths, epochs)
        if side.rest:
            offsets[:, 1] = 0
            sizes[:, 1] = lengths
        return self._pairs(rows, begins, offsets, sizes, epochs)

    def _first_crops(self, texts: Texts, width: int) -> np.ndarray:
        """Mark the first crops in the second crops' ranges, whole passages: bool [B, n]."""
        second = texts.rows >= len(self.tokens)
        rows = texts.rows - second * len(self.tokens)
        offsets, sizes = self._crops(rows, texts.lengths, texts.epochs)
        positions = np.arange(width)
        begin = offsets[:, :1]
        inside = (positions >= begin) & (positions < begin + sizes[:, :1])
        return inside & second[:, None]

    def _crops(
        self, rows: np.ndarray, lengths: np.ndarray, epochs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw two independent crops of each passage: offsets and lengths, int64 [B, 2].

        A crop's share of the passage is uniform, then its position; a crop has at least one
        word-piece, if the passage has any.
        """
        draws = uniforms(self.keys("crop", epochs), rows, 4, salt=1).astype(np.float64)
        least, most = self.crops
        whole = lengths[:, None]
        shares = least + draws[:, :2] * (most - least)
        sizes = np.minimum(whole, np.maximum(1, np.floor(shares * whole))).astype(np.int64)
        offsets = np.floor(draws[:, 2:] * (whole - sizes + 1)).astype(np.int64)
        return offsets, sizes

    def _cut(
        self, rows: np.ndarray, begins: np.ndarray, lengths: np.ndarray, epochs: np.ndarray
    ) -> np.ndarray:
        """Draw the length of each passage's first span, int64 [B].

        The boundary is drawn from the middle half and moved to the beginning of a word. Both spans
        have at most the length of a passage.
        """
        draw = uniforms(self.keys("cut", epochs), rows, 1, salt=1)[:, 0].astype(np.float64)
        low = np.maximum(np.ceil(lengths * MIDDLE[0]), lengths - self.length)
        high = np.minimum(np.floor(lengths * MIDDLE[1]), self.length)
        cut = (low + np.floor(draw * np.maximum(0, high - low + 1))).astype(np.int64)
        pieces = self.tokens.ids  # stays on disk
        while True:
            # an empty last passage begins at the end of the word-pieces
            at = np.minimum(begins + cut, len(pieces) - 1)
            inside = (cut > 0) & ~self.vocabulary.word_starts[pieces[at]]
            if not inside.any():
                return cut
            cut -= inside

    def keys(self, purpose: str, epochs: np.ndarray) -> np.ndarray:
        """Return a random key per epoch for one purpose, uint64 [B]."""
        different, index = np.unique(epochs, return_inverse=True)
        keys = [masking.key(self.seed, purpose, epoch) for epoch in different.tolist()]
        return np.array(keys, np.uint64)[index]

    # --- masks ------------------------------------------------------------------------------------

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Apply equation 1 to texts for one side, given the `others` of the same texts."""
        side = self.sides[name]
        keys = self.keys(side.draws or name, texts.epochs)
        if side.crops and self.spans == 1:
            texts = self._cropped(texts.rows, texts.begins, texts.lengths, texts.epochs, side)
            texts = texts[side.crop :: 2]
        if side.written:
            texts = self._written(name, texts)
        if side.next:
            texts = texts[np.arange(len(texts.rows)) ^ 1]
        batch = self.batch_of(texts, side)
        width = batch.ids.shape[1]
        real = np.arange(width) < batch.lengths[:, None]
        if side.rest:
            real &= ~self._first_crops(texts, width)
        if side.deleted:
            real &= uniforms(keys, batch.rows, width, salt=masking.DELETE) >= side.deleted
        lengths = real.sum(axis=1)
        source = np.flatnonzero(real)
        masked = None
        spelt = None
        if side.misspelt or side.spelt:
            drawn = self.keys("misspelt", texts.epochs)
            masked = self.spelling.choose(batch, side.misspelt or side.spelt, drawn)
        if side.misspelt:
            lengths, source, spelt = self._misspelt(batch, masked, drawn)
        starts = starts_of(lengths + 2)
        content = ragged.content(starts)

        def framed(values: np.ndarray) -> np.ndarray:
            """Join values of word-pieces, [B, n], end to end, with 0 for [CLS] and [SEP]."""
            rows = np.zeros(starts[-1], values.dtype)
            rows[content] = values.ravel()[source]
            return rows

        masked_by = side.beyond or side.complement
        if masked_by:
            masked = np.zeros(batch.ids.shape, bool)
            masked[real] = others[masked_by].chosen[content]
        seen, predicted = self.choose(side, batch, masked, keys)
        ids = seen.ravel()[source]
        if spelt is not None:
            ids = np.where(spelt < 0, ids, spelt)
        labels = self.vocabulary.of_model(batch.ids).astype(np.int64)
        draws = None
        if side.sampled:
            draws = framed(uniforms(keys, batch.rows, width, salt=masking.SAMPLE))
        return Masked(
            sequences.frame(Ragged(ids, starts_of(lengths)), self.vocabulary),
            framed(predicted),
            framed(labels),
            texts,
            partial(self.hide, name) if side.per_position else None,
            draws,
        )

    def _misspelt(
        self, batch: masking.Batch, chosen: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Misspell the `chosen` words, bool [B, n], and cut the passages, which become longer.

        Returns the passages' lengths, int64 [B]; for each word-piece the offset in the padded
        passages, of misspelt words that of their beginning; and the word-pieces, of misspelt words
        the new ones, -1 elsewhere.
        """
        begins, ends, pieces = self.spelling.misspell(batch, chosen, keys)
        real = np.arange(batch.ids.shape[1]) < batch.lengths[:, None]
        counts = real.astype(np.int64).ravel()  # each position becomes none, one or more
        counts[indices(begins, ends - begins)] = 0
        counts[begins] = pieces.lengths
        counts = counts.reshape(real.shape)
        before = np.cumsum(counts, axis=1) - counts
        counts = np.minimum(counts, np.maximum(0, self.length - before))
        source = np.repeat(np.arange(counts.size), counts.ravel())
        first = np.full(counts.size, -1, np.int64)
        first[begins] = pieces.starts[:-1]
        within = np.arange(len(source)) - starts_of(counts.ravel())[source]
        is_new = first[source] >= 0
        spelt = np.full(len(source), -1, np.int64)
        spelt[is_new] = pieces.values[(first[source] + within)[is_new]]
        return counts.sum(axis=1), source, spelt

    def _written(self, name: str, texts: Texts) -> Texts:
        """Return a written text of each text's passage, drawn per epoch, with the text's number."""
        source = self.written[self.sides[name].written - 1]
        rows = texts.rows % len(self.tokens)
        draws = uniforms(self.keys(f"{name} text", texts.epochs), rows, 1, salt=1)[:, 0]
        found = source.drawn(rows, draws)
        lengths = np.minimum(self.lengths[found], self.length)
        return Texts(texts.rows, self.store.starts[found], lengths, texts.epochs)

    def choose(
        self, side: Side, batch: masking.Batch, masked: np.ndarray | None, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a side's visible ids, int32 [B, n], and its predictions, bool [B, n].

        masked: the tokens that `masking.mask` masks first, or those that another side masks.
        """
        if side.crops:
            return batch.ids, np.zeros_like(batch.candidates)
        if side == PLAIN or side.per_position:
            return batch.ids, batch.candidates
        if side.complement:
            chosen = batch.candidates & ~masked
            return masking.corrupt(batch, chosen, side, self.vocabulary, keys), chosen
        return masking.mask(batch, side, self.vocabulary, keys, masked)

    def hide(self, name: str, texts: Texts) -> np.ndarray:
        """Return the positions that each position must not see on a side: bool [B, n, n]."""
        side = self.sides[name]
        return masking.hide(self.batch_of(texts, side), side, self.keys(name, texts.epochs))

    def batch_of(self, texts: Texts, side: Side) -> masking.Batch:
        """Return texts as input for masking, with the values of the side's strategy."""
        values = self.values.get(side.strategy)
        return masking.read_spans(
            self.store, texts.rows, texts.begins, texts.lengths, self.vocabulary, values
        )
