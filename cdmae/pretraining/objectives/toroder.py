"""ToRoDer: an encoder that reads misspelt words (Zhuang et al. 2023, arXiv:2304.08138).

The encoder reads the passage with some words misspelt and others masked, and predicts the masked
ones. The decoder reads the vector and the correct passage, in which the misspelt words are masked,
and then the encoder's masked words and more, up to its ratio; it predicts these. The vector of a
misspelt text therefore has to carry the correct words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cdmae import masking
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining


class ToRoDer(Mae):
    """Encoder, bottleneck and decoder."""

    name = "toroder"

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Return the encoder's side, which misspells words, and the decoder's, which masks them."""
        two = masking.sides(settings, unit)
        return {
            "encoder": replace(two["encoder"], misspelt=settings.misspelt),
            "decoder": replace(two["decoder"], spelt=settings.misspelt, draws="encoder"),
        }
