"""The steps of pre-training: passages in a seeded order, masked on every side.

Step s takes the passages s x batch .. (s + 1) x batch of an endless sequence: one permutation of
the collection per epoch, end to end. Order and masks are functions of (seed, epoch, passage) alone.
They need not be saved, and neither accumulation nor the number of processes changes a step's data.

Many steps are read and masked at a time, in numpy. The Python code of a single step only cuts
views.

    B passages or texts, n word-pieces of the longest one, P passages
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cdmae import masking
from cdmae.errors import InputError
from cdmae.models.ragged import Ragged, starts_of
from cdmae.pretraining.batches import Masked, Step, Texts
from cdmae.training.setup import seed_of

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining
    from cdmae.masking import Batch, Corpus, Side

PASSAGES_AT_ONCE = 4096  # passages read and masked together: a few MB


class Reader:
    """Read whole passages, and mask them on every side by Algorithm 1, as the paper does.

    The reader of an objective that reads other texts overrides `texts`; that of an objective that
    masks them in another way overrides `mask`. spans: texts per passage. read_at_cls: the sides
    whose [CLS] state the objective reads.
    """

    spans = 1
    read_at_cls: tuple[str, ...] = ("encoder", "passage")

    def __init__(
        self,
        settings: Pretraining,
        sides: dict[str, Side],
        corpus: Corpus,
        seed: int,
    ) -> None:
        """Compute the values of the sides' strategies."""
        if not len(corpus.tokens):
            raise InputError("the collection has no passages to pre-train on; choose another one")
        self.settings = settings
        self.sides = sides
        self.tokens = corpus.tokens
        self.vocabulary = corpus.vocabulary
        self.length = settings.max_length - 2  # of a text, without [CLS] and [SEP]
        self.seed = seed
        strategies = [side.strategy for side in sides.values() if side.strategy]
        self.values = masking.values(strategies, corpus)
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    def __len__(self) -> int:
        """Return the number of passages P."""
        return len(self.tokens)

    # --- steps ------------------------------------------------------------------------------------

    def steps(self, begin: int, end: int) -> Iterator[Step]:
        """Yield the steps begin .. end - 1; a thread reads ahead."""
        at_once = max(1, PASSAGES_AT_ONCE // self.settings.batch)
        pending: list[Future[list[Step]]] = []
        with ThreadPoolExecutor(1) as thread:
            for first in range(begin, end, at_once):
                pending.append(thread.submit(self.read, first, min(end, first + at_once)))
                if len(pending) == 2:
                    yield from pending.pop(0).result()
            for last in pending:
                yield from last.result()

    def read(self, begin: int, end: int) -> list[Step]:
        """Read several steps together."""
        batch = self.settings.batch
        positions = np.arange(begin * batch, end * batch)
        epochs, rows = self.passages(positions)
        order = np.lexsort((self.lengths[rows], positions // batch))  # by length within each step
        texts = self.texts(rows[order], epochs[order])
        sides: dict[str, Masked] = {}
        for name in self.sides:
            sides[name] = self.mask(name, texts, sides)
        size = batch * self.spans
        cuts = [slice(first, first + size) for first in range(0, len(texts.rows), size)]
        return [
            Step(
                {side: masked[cut] for side, masked in sides.items()}, self.spans, self.read_at_cls
            )
            for cut in cuts
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
            rows[here] = self._order[1][within[here]]
        return epochs, rows

    # --- texts and masks --------------------------------------------------------------------------

    @property
    def longest(self) -> int:
        """Return the number of word-pieces at which passages are cut."""
        return self.length

    @cached_property
    def lengths(self) -> np.ndarray:
        """Return the number of word-pieces of every passage after cutting, int64 [P]."""
        return np.minimum(np.diff(self.tokens.starts), self.longest)

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return `spans` texts of each of the passages `rows`, in their epochs."""
        return Texts(rows, self.tokens.starts[rows], self.lengths[rows], epochs)

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Apply equation 1 to texts for one side, given the `others` of the same texts."""
        side = self.sides[name]
        batch = self.batch_of(texts, side)
        first = others[side.beyond].grid() if side.beyond else None
        keys = self.keys(name, texts.epochs)
        ids, chosen = masking.mask(batch, side, self.vocabulary, keys, first)
        return self.unpadded(texts, batch, ids, chosen)

    def batch_of(self, texts: Texts, side: Side) -> Batch:
        """Return texts as input for masking, with the values of the side's strategy."""
        values = self.values.get(side.strategy)
        return masking.pad(
            self.tokens, texts.rows, texts.begins, texts.lengths, self.vocabulary, values
        )

    def unpadded(
        self,
        texts: Texts,
        batch: Batch,
        ids: np.ndarray,
        chosen: np.ndarray,
        kept: np.ndarray | None = None,
    ) -> Masked:
        """Concatenate padded passages.

        ids, chosen [B, n]: the input and the tokens to predict. kept: bool [B, n], the cells that
        remain; None: all but padding.
        """
        kept = batch.real if kept is None else kept
        inputs = self.vocabulary.of_model(ids[kept]).astype(np.int64)
        labels = self.vocabulary.of_model(batch.ids[kept]).astype(np.int64)
        return Masked(Ragged(inputs, starts_of(kept.sum(axis=1))), chosen[kept], labels, texts)

    def keys(self, purpose: str, epochs: np.ndarray) -> np.ndarray:
        """Return a random key per epoch for one purpose, uint64 [B]."""
        different, index = np.unique(epochs, return_inverse=True)
        keys = [masking.key(self.seed, purpose, epoch) for epoch in different.tolist()]
        return np.array(keys, np.uint64)[index]


def word_begins(
    cuts: np.ndarray, begins: np.ndarray, pieces: np.ndarray, word_starts: np.ndarray
) -> np.ndarray:
    """Move each cut to the left, to the beginning of its word or of its text.

    cuts, begins: int64, offsets in the word-pieces `pieces`; begins: those of the texts.
    """
    while len(pieces):
        # an empty last passage begins at the end of the word-pieces
        at = np.minimum(cuts, len(pieces) - 1)
        inside = (cuts > begins) & ~word_starts[pieces[at]]
        if not inside.any():
            break
        cuts = cuts - inside
    return cuts
