"""MASTER: decoders of the passage and of the neighbouring span (Zhou et al. 2022)."""

from __future__ import annotations

from typing import Any, Literal

from cdmae.config.encoders import Decoded, Layered
from cdmae.fields import setting, settings


@settings
class Master(Layered, Decoded):
    """Several decoders that read one vector."""

    in_words = (
        "with MASTER's decoders of the passage and of the neighbouring span (Zhou et al. 2022)"
    )
    spans = 2

    objective: Literal["master"] = setting(
        "master",
        meaning="decoders of the passage and of the neighbouring span",
        source="Zhou et al. 2022",
    )

    def predicted(self, tokens: float) -> float:
        """Count the masked tokens of the encoder and of both decoders."""
        return (self.encoder_ratio + 2 * self.decoder_ratio) * tokens

    def further_flops(self, network: Any, tokens: float) -> float:
        """Count the second decoder, forward and backward."""
        return 3 * self.decoder_layers * network.layer(tokens)
