"""MASTER: several decoders behind one [CLS] vector (Zhou et al. 2022, section 3), text only.

The objective reads two neighbouring spans of a passage; two decoders read each span's vector. One
decoder restores the masked words of the span itself (*corrupted passages recovering*; the paper
masks rare words first: ``decoder_masking: inverse_frequency``). The other decoder restores the
masked words of the neighbour (*related passages recovering*). Encoder and decoders share the LM
head. The loss is the sum of three means, each over the masked tokens of one network, as in the
published code (microsoft/SimXNS, ``MASTER/modeling.py``: `c_head` and `next_head`; two layers each,
no projection).

Three of that code's five decoders are missing here. Two restore texts that other models generated
(docT5query's queries and GPT-2's continuations), which collections do not contain. The third
restores the complement of the tokens that another pass of the encoder masked. That code also
encodes the whole passage for the first decoder, and its first half again for the second. Here one
pass over a span serves both.

    B spans, M masked rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Generator, Tensor

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.models import weights
from cdmae.pretraining.batches import Batch
from cdmae.pretraining.objectives._parts import weights_of
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Master(Mae):
    """Encoder, and a decoder for each task."""

    name = "master"

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Draw the weights of both decoders by `seed`."""
        super().__init__(model, settings, seed)
        self.neighbour = weights.layers(
            model.config, settings.decoder_layers, weights_of(seed, "neighbour")
        )

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Mask both spans for the encoder, their own decoder and the other span's decoder."""
        sides = masking.sides(settings, unit)
        return sides | {"neighbour": replace(sides["decoder"], next=True)}

    def forward(
        self, batch: Batch, generator: Generator | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return L = L_enc + L_own + L_next; the curve shows the last two as the decoder's loss."""
        encoder = batch["encoder"]
        own = batch["decoder"]
        neighbour = batch["neighbour"]
        h_c, encoded = self.encode(encoder, generator)
        restored = self.decode(h_c, own, generator)
        following = self.decode(h_c, neighbour, generator, self.neighbour)
        return self.losses(batch, h_c, (encoded, encoder), (restored, own), (following, neighbour))
