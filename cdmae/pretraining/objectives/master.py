"""MASTER: several decoders behind one [CLS] vector (Zhou et al. 2022, section 3), as far as a collection's texts reach.

Two neighbouring spans of a passage, and for the vector of either two decoders: one restores the masked words of the
span itself (*corrupted passages recovering*, there with rare words masked first: ``decoder_masking:
inverse_frequency``), the other those of its neighbour (*related passages recovering*). Encoder and decoders share the
LM head, each has its own mean over its masked tokens, and the losses are added up, as in the published code
(microsoft/SimXNS, ``MASTER/modeling.py``: `c_head` and `next_head`; two layers each, no projection).

Of that code's five decoders three are not here. Two restore what other models made of a passage, docT5query's queries
and GPT-2's continuation: texts that a collection does not have, and nothing stands in for them. The third restores the
complement of what another pass of the encoder masked. That code also encodes the whole passage for the first decoder
and its first half, once more, for the second; here one pass over a span feeds both.

    B spans, M masked rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Generator, Tensor

from cdmae import masking
from cdmae.models import weights
from cdmae.pretraining.batches import Batch
from cdmae.pretraining.objectives._parts import losses_of, weights_of
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.schema import Encoder
    from cdmae.masking import Side


def sides(settings: Encoder, unit: str) -> dict[str, Side]:
    """Mask both spans for the encoder, for the decoder of each, and for the decoder beside the other."""
    encoder, decoder = masking.sides(settings, unit)
    return {"encoder": encoder, "decoder": decoder, "neighbour": replace(decoder, next=True)}


def create(model: PreTrainedModel, settings: Encoder, seed: int) -> Master:
    """Build the objective around an encoder with its LM head; the decoders' random weights depend on `seed`."""
    return Master(model, settings.decoder_layers, seed)


class Master(Mae):
    """Encoder, and a decoder for each task."""

    def __init__(self, model: PreTrainedModel, decoder_layers: int, seed: int) -> None:
        """`seed` draws the weights of either decoder."""
        super().__init__(model, decoder_layers, False, weights_of(seed, "decoder"))
        self.neighbour = weights.layers(model.config, decoder_layers, weights_of(seed, "neighbour"))

    def forward(self, batch: Batch, generator: Generator | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """L = L_enc + L_own + L_next; the last two are shown together, as the decoder's."""
        views = [batch[side] for side in ("encoder", "decoder", "neighbour")]
        h_c, encoded = self.encode(views[0], generator)
        own = self.decode(h_c, views[1], generator)
        following = self.restore(self.neighbour, h_c, views[2], generator)
        return losses_of(self.model, batch, h_c, *zip([encoded, own, following], views, strict=True))
