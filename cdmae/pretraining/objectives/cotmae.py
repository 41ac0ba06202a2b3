"""CoT-MAE: a contextual masked auto-encoder (Wu et al. 2023, "ConTextual Masked Auto-Encoder", section 3).

Two neighbouring spans of a passage: from the vector of either, the decoder restores the other's masked tokens, so that
the vector must hold what its surroundings are about. The decoder's input is the other span with the vector in the place
of [CLS]; all else is as in `mae`. The paper samples spans from documents; a collection has passages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cdmae import masking
from cdmae.pretraining.objectives._parts import weights_of
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.schema import Encoder
    from cdmae.masking import Side


def sides(settings: Encoder, unit: str) -> dict[str, Side]:
    """Return how both spans are masked for the encoder, and each for the decoder beside the other's vector."""
    encoder, decoder = masking.sides(settings, unit)
    return {"encoder": encoder, "decoder": replace(decoder, next=True)}


def create(model: PreTrainedModel, settings: Encoder, seed: int) -> Mae:
    """Build the objective around an encoder with its LM head; the decoder's random weights depend on `seed`."""
    return Mae(model, settings.decoder_layers, False, weights_of(seed, "decoder"))
