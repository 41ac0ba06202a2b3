"""CoT-MAE: a contextual masked auto-encoder (Wu et al. 2023, section 3).

Two neighbouring spans of a passage: from the vector of either, the decoder restores the other's
masked tokens, so that the vector must hold what its surroundings are about. The decoder's input is
the other span with the vector instead of [CLS]; all else is as in `mae`. The paper samples
spans from documents; a collection has passages.
"""

from __future__ import annotations

from dataclasses import replace

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.pretraining.objectives.mae import Mae


class CotMae(Mae):
    """Encoder and a decoder without a projection before it."""

    name = "cotmae"

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Return the masks of both spans for the encoder and for the other span's decoder."""
        sides = masking.sides(settings, unit)
        return sides | {"decoder": replace(sides["decoder"], next=True)}
