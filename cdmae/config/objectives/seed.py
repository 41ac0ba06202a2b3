"""SEED-Encoder: a weak autoregressive decoder (Lu et al. 2021)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Layered, Pooled
from cdmae.fields import Positive, settings


@settings
class Seed(Layered, Pooled):
    """A decoder that predicts every token from the vector and the last tokens before it."""

    in_words = "with SEED-Encoder's weak autoregressive decoder (Lu et al. 2021)"

    objective: Literal["seed"] = "seed"
    """A weak decoder that predicts every token from the vector and a few tokens before it [Lu et
    al. 2021].
    """
    decoder_layers: Positive = 3
    """Transformer layers of the decoder [SEED-Encoder: decoder_layers]."""
    attention_span: Positive = 2
    """Tokens that a layer of the decoder sees in addition to the vector (word-pieces)
    [SEED-Encoder: decoder_atten_window].
    """
