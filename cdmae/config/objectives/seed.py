"""SEED-Encoder: a weak autoregressive decoder (Lu et al. 2021)."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Layered, Pooled
from cdmae.fields import setting, settings


@settings
class Seed(Layered, Pooled):
    """A decoder that predicts every token from the vector and the last tokens before it."""

    in_words = "with SEED-Encoder's weak autoregressive decoder (Lu et al. 2021)"

    objective: Literal["seed"] = setting(
        "seed",
        meaning="a weak decoder that predicts every token from the vector and a few tokens before "
        "it",
        source="Lu et al. 2021",
    )
    decoder_layers: int = setting(
        3,
        meaning="Transformer layers of the decoder",
        source="SEED-Encoder: decoder_layers",
        low=1,
        high=100,
    )
    attention_span: int = setting(
        2,
        unit="word-pieces",
        meaning="tokens that a layer of the decoder sees in addition to the vector",
        source="SEED-Encoder: decoder_atten_window",
        low=1,
        high=2**16,
    )

    def predicted(self, tokens: float) -> float:
        """Count the encoder's masked tokens, and all tokens for the decoder."""
        return self.encoder_ratio * tokens + tokens
