"""CoT-MAE: a contextual masked auto-encoder (Wu et al. 2023, section 3).

The objective reads two neighbouring spans of a passage. From the vector of a span, the decoder
restores the masked tokens of its neighbour. The vector must therefore represent the topic of its
surroundings. The decoder's input is the neighbour with the vector instead of [CLS]. Everything else
is as in `mae`. The paper samples spans from documents; a collection has passages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdmae.pretraining.objectives._contexts import Contexts, exchanged
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Masked, Texts


class Neighbours(Contexts):
    """Gives the decoder the other one of two texts."""

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Apply equation 1; the decoder's texts are exchanged."""
        return super().mask(name, exchanged(texts) if name == "decoder" else texts, others)


class CotMae(Mae):
    """Encoder and a decoder without a projection before it."""

    name = "cotmae"
    reader = Neighbours
