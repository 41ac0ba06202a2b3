"""CoT-MAE: a contextual masked auto-encoder (Wu et al. 2023, section 3).

The objective reads two neighbouring spans of a passage. From the vector of a span, the decoder
restores the masked tokens of its neighbour. The vector must therefore represent the topic of its
surroundings. The decoder's input is the neighbour with the vector instead of [CLS]. Everything else
is as in `mae`. The paper samples spans from documents; a collection has passages.

With `context: query` the two texts are a passage and a query for it (Wu et al. 2023,
Query-as-context Pre-training): each text's vector restores the masked words of the other. The
published code (caskcsg/ir, ``cotmae-qc``) encodes passages only, and restores their queries by an
autoregressive decoder.
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
