"""RetroMAE: enhanced decoding (Xiao et al. 2022, section 3.3).

The encoder predicts its masked tokens. One decoder layer predicts *every* token, each from the
passage's vector and a random part of the passage that is drawn for this token alone. The queries
are H1 = h + p_i, the context is H2 = [h; e_j + p_j]. Position i attends to j if j = 0 or j is in
the part of i, and never to itself. A part consists of the tokens that the decoder's masking leaves
visible; each position has its own mask.

    B passages, S rows, M predicted rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from torch import Generator, Tensor

from cdmae import masking
from cdmae.models import transformer
from cdmae.pretraining.objectives._parts import passages_of
from cdmae.pretraining.objectives.mae import Mae
from cdmae.pretraining.reader import Reader

if TYPE_CHECKING:
    from cdmae.masking import Batch, Side
    from cdmae.masking.noise import Key
    from cdmae.pretraining.batches import Masked, Texts, View

MOST = 1 << 16  # positions of a passage for which `hide` has distinct random streams
CELLS_AT_ONCE = 1 << 20  # cells of the masks per position that `hide` computes together: a few MB


class Positions(Reader):
    """Leaves the decoder's input unmasked; each position has its own attention mask."""

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Mask the encoder's side; on the decoder's side, predict every token."""
        if name != "decoder":
            return super().mask(name, texts, others)
        batch = self.batch_of(texts, self.sides[name])
        every = self.unpadded(texts, batch, batch.ids, batch.candidates)
        return replace(every, hide=self.hide)

    def hide(self, texts: Texts) -> np.ndarray:
        """Return the positions that each position of the decoder must not see: bool [B, n, n]."""
        side = self.sides["decoder"]
        return hide(self.batch_of(texts, side), side, self.keys("decoder", texts.epochs))


def hide(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Draw for each position the tokens hidden from it: bool [B, n, n] (RetroMAE, section 3.2).

    ``[b, i]`` is the mask of position i of passage b: position i itself and the tokens that the
    side's strategy draws for this position alone, the same number in every mask of the passage.
    """
    passages, length = batch.ids.shape
    hidden = np.empty((passages * length, length), bool)
    arrays = {name: value for name, value in vars(batch).items() if value is not None}
    at_once = max(1, CELLS_AT_ONCE // max(1, length))
    for first in range(0, len(hidden), at_once):
        last = min(first + at_once, len(hidden))
        passage, position = np.divmod(np.arange(first, last), length)
        repeated = {name: value[passage] for name, value in arrays.items()}
        repeated["rows"] = repeated["rows"] * MOST + position - 1
        keys = np.full(passages, key, np.uint64)[passage]
        hidden[first:last] = masking.choose(masking.Batch(**repeated), side, keys)
    hidden = hidden.reshape(passages, length, length)
    hidden[:, np.arange(length), np.arange(length)] = True
    return hidden


class RetroMae(Mae):
    """Encoder and enhanced decoder."""

    name = "retromae"
    reader = Positions
    probed = False  # its decoder predicts every token

    def decode(self, h_c: Tensor, view: View, generator: Generator | None = None) -> Tensor:
        """Return the states of all tokens [M, D] from the passages' vectors [B, D]."""
        encoder = self.model.base_model
        positions = view.inputs.positions.index_select(0, view.rows.index)
        if self.positions is None:
            vectors = transformer.position_vectors(encoder, positions)
        else:
            vectors = self.positions(positions)
        states = transformer.read(
            encoder,
            self.decoder[0],
            h_c.index_select(0, passages_of(view)) + vectors,
            view.rows,
            self.context(h_c, view.inputs, generator),
            view.inputs,
            view.hidden,
            generator,
        )
        return states.index_select(0, view.masked)
