"""SEED-Encoder: a weak autoregressive decoder (Lu et al. 2021, section 4).

The encoder predicts its masked tokens. The decoder predicts *every* token of the unmasked passage
from the vector and the k tokens before it: L_dec = -log P(x_t | h, x_{t-k} .. x_{t-1}), the mean
over tokens. A decoder that sees only a few tokens depends on the vector.

Position 0 of the decoder's input is the vector, which every position sees in every layer. In
addition, position i sees the positions i - k + 1 to i, and its state predicts token i + 1. With
several layers, tokens further back reach it indirectly.

The published code (microsoft/SEED-Encoder) reads the vector by cross-attention instead. It shares
the word embeddings of encoder and decoder, as here. [SEP] and other special tokens are not
predicted.

    B passages, n rows of the longest passage, M predicted rows, D dimensions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from cdmae.models import transformer
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from cdmae.pretraining.batches import View


class Seed(Mae):
    """Encoder and autoregressive decoder."""

    name = "seed"
    masked = ("encoder",)
    plain = ("decoder",)

    def decode(self, h_b: Tensor, view: View, generator: Generator | None = None) -> Tensor:
        """Return the states that predict each token [M, D], from the vectors [B, D]."""
        encoder = self.model.base_model
        inputs = view.inputs
        states = self.context(h_b, inputs, generator)
        hidden = hidden_positions(inputs.longest, self.settings.attention_span, states.device)
        for layer in self.decoder:
            states = transformer.read(
                encoder, layer, states, inputs, states, inputs, hidden[None], generator
            )
        predicted = view.rows.index.index_select(0, view.masked)
        before = (predicted - 1).clamp_min(0)  # filler has row 0
        return states.index_select(0, before)


def hidden_positions(length: int, span: int, on: torch.device) -> Tensor:
    """Return the positions that each position must not see: bool [n, n].

    Position i sees position 0, which has the vector, and the last `span` positions up to itself.
    """
    positions = torch.arange(length, device=on)
    distance = positions[:, None] - positions
    seen = (distance >= 0) & (distance < span)
    seen[:, 0] = True
    return ~seen
