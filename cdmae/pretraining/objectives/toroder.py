"""ToRoDer: an encoder that reads misspelt words (Zhuang et al. 2023, arXiv:2304.08138).

The encoder reads the passage with some words misspelt and others masked, and predicts the masked
ones. The decoder reads the vector and the correct passage, in which exactly the misspelt words are
masked, and predicts these. The vector of a misspelt text therefore has to carry the correct words.
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
        """Return the decoder's side, which chooses the words to misspell, and the encoder's."""
        encoder = masking.encoder_side(settings, unit)
        words = masking.Side("", settings.misspelt, mask_share=1.0, random_share=0.0, spelt=True)
        return {"decoder": words, "encoder": replace(encoder, misspelt="decoder")}
