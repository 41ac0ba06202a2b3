"""Pre-training batches: passages in a seeded order, masked on both sides, in micro-batches.

Step s takes the passages s x batch .. (s + 1) x batch of an endless sequence: one permutation of
the collection per epoch, end to end. Order and masks are functions of (seed, epoch, passage) alone,
so they need no saving, and neither accumulation nor the number of processes changes a step's data.

Many steps are read and masked at a time, in numpy: nothing here runs per step in Python but cutting
views.

    B passages of a micro-batch, S rows, M predicted rows with filler (see `cdmae.models.packed`)

A side masks the text, or shows it as it is (`cdmae.masking.Side`). Where an objective reads two
neighbouring spans of a passage, each of them is a sequence of its own, one after the other; below,
"passages" then means spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from cdmae import masking
from cdmae.errors import InputError
from cdmae.masking import PLAIN
from cdmae.masking.noise import uniforms
from cdmae.models import packed, sequences
from cdmae.models.packed import Packed, Rows
from cdmae.models.ragged import Ragged, starts_of
from cdmae.training.setup import seed_of

if TYPE_CHECKING:
    from cdmae.masking import Side
    from cdmae.tokens.corpus import Tokens
    from cdmae.tokens.vocabulary import Vocabulary

PASSAGES_AT_ONCE = 4096  # read and masked together: some MB
READ_AT_CLS = ("encoder", "passage")  # the sides whose [CLS] something reads
MIDDLE = 0.25, 0.75  # where a passage is cut into two spans


@dataclass(frozen=True)
class View:
    """One side of a micro-batch: its input and the tokens to predict.

    inputs: the passages as the side shows them, [CLS] and [SEP] included. rows: where its last
    layer is needed, the rows to be predicted and perhaps [CLS]. masked: int64 [M], the predicted
    ones among `rows`. labels: int64 [M], their original ids. weights: float32 [M], 1 / (predicted
    tokens of the side in the global batch), 0 for filler. hidden: bool [B, m, n], which rows of its
    passage each of `rows` must not see, on the padded grids of `rows` and `inputs`; None where all
    see the same. draws: float32 [M], numbers in [0, 1), on a side that samples.
    """

    inputs: Packed
    rows: Rows
    masked: Tensor
    labels: Tensor
    weights: Tensor
    hidden: Tensor | None = None
    draws: Tensor | None = None


@dataclass(frozen=True)
class Batch:
    """A micro-batch: its views by side, and its range in the global batch of `whole` passages.

    common: a loss over the whole global batch, 0-d; pull: its gradient at [CLS], [B, D]; where an
    objective has one.
    """

    views: dict[str, View]
    place: slice
    whole: int
    common: Tensor | None = None
    pull: Tensor | None = None

    def __getitem__(self, side: str) -> View:
        """Return the view of a side."""
        return self.views[side]

    @property
    def share(self) -> float:
        """Return the micro-batch's share of the global batch's passages."""
        return (self.place.stop - self.place.start) / self.whole


@dataclass(frozen=True)
class Texts:
    """Ranges of a collection's word-pieces, int64 [B] each: offset, length and epoch.

    rows: the keys of their random draws; for a whole passage, its row number.
    """

    rows: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray
    epochs: np.ndarray

    def __getitem__(self, which: slice | np.ndarray) -> Texts:
        """Take some of them."""
        return Texts(self.rows[which], self.begins[which], self.lengths[which], self.epochs[which])


@dataclass(frozen=True)
class Masked:
    """One side of many passages on the host, framed by [CLS] and [SEP].

    chosen: bool [S], the tokens to predict; labels: int64 [S]. hide: returns the positions that
    each position must not see, bool [B, n, n]; draws: float32 [S], numbers in [0, 1) to sample by.
    """

    inputs: Ragged
    chosen: np.ndarray
    labels: np.ndarray
    texts: Texts
    hide: Callable[[Texts], np.ndarray] | None = None
    draws: np.ndarray | None = None

    def __getitem__(self, cut: slice) -> Masked:
        """Take a range of passages, as views."""
        rows = slice(self.inputs.starts[cut.start], self.inputs.starts[cut.stop])
        draws = None if self.draws is None else self.draws[rows]
        return Masked(
            self.inputs.cut(cut),
            self.chosen[rows],
            self.labels[rows],
            self.texts[cut],
            self.hide,
            draws,
        )

    def view(self, total: int, *, with_cls: bool, on: torch.device) -> View:
        """Put these passages on the device; `total` is the global batch's predicted tokens."""
        needed = self.chosen.copy()
        needed[self.inputs.starts[:-1]] |= with_cls
        index = np.flatnonzero(needed)
        chosen = np.flatnonzero(self.chosen)

        def filled(values: np.ndarray) -> Tensor:
            array = np.zeros(packed.row_count(len(chosen), on), values.dtype)
            array[: len(chosen)] = values
            return packed.put(array, on)

        inputs = packed.pack(self.inputs, on)
        rows = packed.select(index, self.inputs.starts, on)
        hidden = None
        if self.hide is not None:
            grid = rows.layout.longest, inputs.layout.longest
            hidden = packed.put(self._hidden(self.hide(self.texts), *grid), on)
        return View(
            inputs,
            rows,
            masked=filled(np.searchsorted(index, chosen)),
            labels=filled(self.labels[chosen]),
            weights=filled(np.full(len(chosen), 1 / max(1, total), np.float32)),
            hidden=hidden,
            draws=None if self.draws is None else filled(self.draws[chosen]),
        )

    def _hidden(self, masks: np.ndarray, rows: int, columns: int) -> np.ndarray:
        """Spread the content's masks [B, n, n] over the grids of predicted rows and all rows.

        [CLS] and [SEP] are seen by all, padding by none.
        """
        hidden = np.ones((len(masks), rows, columns), bool)
        for passage, (begin, end) in enumerate(
            zip(self.inputs.starts[:-1], self.inputs.starts[1:], strict=True)
        ):
            size = end - begin - 2
            predicted = np.flatnonzero(self.chosen[begin + 1 : end - 1])
            hidden[passage, : len(predicted), 1 : size + 1] = masks[passage, predicted, :size]
            hidden[passage, :, [0, size + 1]] = False
        return hidden


@dataclass(frozen=True)
class Step:
    """A global batch on the host, sorted by length; spans: sequences per passage, 1 or 2."""

    sides: dict[str, Masked]
    spans: int = 1

    def batches(
        self, rows: int, on: torch.device, rank: int = 0, ranks: int = 1
    ) -> Iterator[Batch]:
        """Yield the micro-batches, about `rows` rows each, of process `rank` of `ranks`.

        A process gets every `ranks`-th micro-batch.

        Weights refer to the global batch: accumulation and data parallelism only add up the
        gradients of all micro-batches.
        """
        totals = {side: int(masked.chosen.sum()) for side, masked in self.sides.items()}
        starts = next(iter(self.sides.values())).inputs.starts
        cuts = _cuts(starts[:: self.spans], rows, ranks).tolist()
        for a, b in list(zip(cuts[:-1], cuts[1:], strict=True))[rank::ranks]:
            cut = slice(a * self.spans, b * self.spans)
            views = {
                side: masked[cut].view(totals[side], with_cls=side in READ_AT_CLS, on=on)
                for side, masked in self.sides.items()
            }
            yield Batch(views, cut, len(starts) - 1)


def _cuts(starts: np.ndarray, rows: int, ranks: int) -> np.ndarray:
    """Return where to cut passages at `starts` into non-empty pieces of about `rows` rows.

    Each of `ranks` processes gets the same number of pieces, if there are enough passages.
    """
    passages = len(starts) - 1
    count = -(-max(1, int(starts[-1])) // rows)
    count = min(-(-count // ranks) * ranks, passages)
    numbers = np.arange(count + 1)
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], count + 1))
    # Each cut is at least one passage after the previous cut.
    cuts = np.maximum.accumulate(cuts - numbers) + numbers
    return np.minimum(cuts, passages - count + numbers)


class Reader:
    """Reads the steps of a pre-training."""

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
    ) -> None:
        """Take the word-pieces and the strategies' values.

        values: by name, float16 [T]. max_length: [CLS] and [SEP] included.
        """
        if not len(tokens):
            raise InputError("the collection has no passages; there is nothing to pre-train on")
        self.tokens, self.values, self.vocabulary, self.sides = tokens, values, vocabulary, sides
        self.batch, self.length, self.seed = batch, max_length - 2, seed
        self.spans = max(2 if side.next else side.spans for side in sides.values())
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Word-pieces of every passage after cutting, int64 [P]."""
        return np.minimum(np.diff(self.tokens.starts), self.length * self.spans)

    def steps(self, begin: int, end: int, *, ahead: bool = False) -> Iterator[Step]:
        """Yield the steps begin .. end - 1; with `ahead`, a thread reads the next meanwhile."""
        at_once = max(1, PASSAGES_AT_ONCE // self.batch)
        spans = [(first, min(end, first + at_once)) for first in range(begin, end, at_once)]
        if not ahead:
            for span in spans:
                yield from self.read(*span)
            return
        with ThreadPoolExecutor(1) as reader:
            following = None
            for span in [*spans, None]:
                ready, following = following, span and reader.submit(self.read, *span)
                yield from ready.result() if ready else ()

    def read(self, begin: int, end: int) -> list[Step]:
        """Read some steps at once."""
        places = np.arange(begin * self.batch, end * self.batch)
        epochs, rows = self.passages(places)
        order = np.lexsort((self.lengths[rows], places // self.batch))  # within each step by length
        texts = self.texts(rows[order], epochs[order])
        sides: dict[str, Masked] = {}
        for name in self.sides:
            sides[name] = self.mask(name, texts, sides)
        size = self.batch * self.spans
        cuts = [slice(at, at + size) for at in range(0, len(texts.rows), size)]
        return [
            Step({side: masked[cut] for side, masked in sides.items()}, self.spans) for cut in cuts
        ]

    def passages(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return epochs and passages at some ascending positions of the endless sequence."""
        epochs, within = np.divmod(places, len(self.tokens))
        rows = np.empty_like(places)
        for epoch in np.unique(epochs).tolist():
            if self._order[0] != epoch:
                draw = np.random.default_rng(seed_of(self.seed, "order", epoch))
                self._order = epoch, draw.permutation(len(self.tokens))
            here = epochs == epoch
            rows[here] = self._order[1][within[here]]
        return epochs, rows

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return the passages `rows`, or two neighbouring spans of each, in their epochs.

        Both spans have at most the length of a passage. The boundary is drawn from the middle half
        and moved to the beginning of a word. Second spans have row numbers beyond the collection's,
        so that their draws differ.
        """
        begins, lengths = self.tokens.starts[rows], self.lengths[rows]
        if self.spans == 1:
            return Texts(rows, begins, lengths, epochs)
        draw = uniforms(self.keys("cut", epochs), rows, 1, salt=1)[:, 0].astype(np.float64)
        low = np.maximum(np.ceil(lengths * MIDDLE[0]), lengths - self.length)
        high = np.minimum(np.floor(lengths * MIDDLE[1]), self.length)
        cut = (low + np.floor(draw * np.maximum(0, high - low + 1))).astype(np.int64)
        pieces = np.append(
            self.tokens.ids, self.tokens.ids.dtype.type(0)
        )  # an empty last passage begins at the end
        while (inside := (cut > 0) & ~self.vocabulary.word_starts[pieces[begins + cut]]).any():
            cut -= inside
        pairs = (
            (rows, rows + len(self.tokens)),
            (begins, begins + cut),
            (cut, np.minimum(lengths - cut, self.length)),
        )
        return Texts(*(np.stack(pair, axis=1).ravel() for pair in pairs), np.repeat(epochs, 2))

    def keys(self, purpose: str, epochs: np.ndarray) -> np.ndarray:
        """Return the key of a purpose in each of some epochs, uint64 [B]."""
        different, place = np.unique(epochs, return_inverse=True)
        return np.array(
            [masking.key(self.seed, purpose, epoch) for epoch in different.tolist()], np.uint64
        )[place]

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Equation 1 for one side of some texts, after the `others` of the same texts."""
        side, keys = self.sides[name], self.keys(name, texts.epochs)
        if side.next:
            texts = texts[np.arange(len(texts.rows)) ^ 1]
        batch, starts = self.batch_of(texts, side), starts_of(texts.lengths + 2)
        real, content = (
            np.arange(batch.ids.shape[1]) < batch.lengths[:, None],
            sequences.content(starts),
        )

        def framed(values: np.ndarray) -> np.ndarray:
            """Put values of word-pieces, [B, n], end to end, with 0 for [CLS] and [SEP]."""
            rows = np.zeros(starts[-1], values.dtype)
            rows[content] = values[real]
            return rows

        masked = np.zeros(batch.ids.shape, bool)
        if side.beyond:
            masked[real] = others[side.beyond].chosen[content]
        seen, predicted = self.choose(side, batch, masked, keys)
        inputs = sequences.frame(Ragged(seen[real], starts_of(texts.lengths)), self.vocabulary)
        labels = framed(self.vocabulary.of_model(batch.ids).astype(np.int64))
        draws = None
        if side.sampled:
            draws = framed(uniforms(keys, batch.rows, batch.ids.shape[1], salt=masking.SAMPLE))
        hide = partial(self.hide, name) if side.per_position else None
        return Masked(inputs, framed(predicted), labels, texts, hide, draws)

    def choose(
        self, side: Side, batch: masking.Batch, masked: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a side's visible ids, int32 [B, n], and its predictions, bool [B, n]."""
        if side == PLAIN or side.per_position:
            return batch.ids, batch.candidates
        if not side.beyond:
            return masking.mask(batch, side, self.vocabulary, keys)
        # SimLM masks so many of the rest that both together are the side's ratio.
        before = self.sides[side.beyond].ratio
        rest = replace(batch, candidates=batch.candidates & ~masked)
        more = replace(side, ratio=(side.ratio - before) / (1 - before))
        chosen = masked | masking.strategy(side.strategy).select(rest, more, keys)
        return masking.corrupt(batch, chosen, side, self.vocabulary, keys), chosen

    def hide(self, name: str, texts: Texts) -> np.ndarray:
        """Return the positions that each position must not see on a side: bool [B, n, n]."""
        side = self.sides[name]
        return masking.hide(self.batch_of(texts, side), side, self.keys(name, texts.epochs))

    def batch_of(self, texts: Texts, side: Side) -> masking.Batch:
        """Return some texts as input for masking, with the values of the side's strategy."""
        values = self.values.get(side.strategy)
        return masking.read_spans(
            self.tokens, texts.rows, texts.begins, texts.lengths, self.vocabulary, values
        )
