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

from torch import Generator, Tensor

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.models import transformer
from cdmae.pretraining.batches import View
from cdmae.pretraining.objectives._parts import passages_of
from cdmae.pretraining.objectives.mae import Mae


class RetroMae(Mae):
    """Encoder and enhanced decoder."""

    name = "retromae"
    probed = False  # its decoder predicts every token
    layers = 1

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Return the encoder's masks, and the decoder's for each position."""
        sides = masking.sides(settings, unit)
        return sides | {"decoder": replace(sides["decoder"], per_position=True)}

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
            view.rows.layout,
            self.context(h_c, view.inputs, generator),
            view.inputs.layout,
            view.hidden,
            generator,
        )
        return states.index_select(0, view.masked)
