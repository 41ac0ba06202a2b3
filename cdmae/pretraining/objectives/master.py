"""MASTER: several decoders behind one [CLS] vector (Zhou et al. 2022, section 3).

The objective reads two neighbouring spans of a passage; two decoders read each span's vector. One
decoder restores the masked words of the span itself (*corrupted passages recovering*; the paper
masks rare words first: ``decoder_masking: inverse_frequency``). The other decoder restores the
masked words of the neighbour (*related passages recovering*). Encoder and decoders share the LM
head. The loss is the sum of the means, each over the masked tokens of one network, as in the
published code (microsoft/SimXNS, ``MASTER/modeling.py``: `c_head` and `next_head`; two layers each,
no projection).

A third decoder restores the complement of the encoder's masks (`overlap_head` of that code): in a
second pass, the encoder reads a span with other masks (``complement_ratio``), and the decoder
restores all words that this pass saw. Both have a loss.

Two more decoders of that code restore texts that other models generated (*PLMs outputs recovering*:
docT5query's queries and GPT-2's continuations). Collections do not contain these. That code also
encodes the whole passage for the first and the third decoder, and its first half again for the
second. Here the encoder reads spans only.

    B spans, M masked rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Generator

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.models import weights
from cdmae.pretraining.batches import Batch, Masked, Texts
from cdmae.pretraining.objectives._contexts import Contexts, exchanged
from cdmae.pretraining.objectives._parts import Losses, weights_of
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.masking import Side


class Tasks(Contexts):
    """Reads two spans of each passage; each decoder has a text of its own."""

    read_at_cls = ("encoder", "second")

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Apply equation 1 to a decoder's own text; `complement` masks what `second` has not."""
        if name == "neighbour":
            texts = exchanged(texts)
        if name != "complement":
            return super().mask(name, texts, others)
        side = self.sides[name]
        batch = self.batch_of(texts, side)
        chosen = batch.candidates & ~others["second"].grid()
        keys = self.keys(name, texts.epochs)
        ids = masking.corrupt(batch, chosen, side, self.vocabulary, keys)
        return self.unpadded(texts, batch, ids, chosen)


class Master(Mae):
    """Encoder, and a decoder for each task."""

    name = "master"
    reader = Tasks

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Draw the weights of all decoders with `seed`."""
        super().__init__(model, settings, seed)
        for name in ("neighbour", "complement") if settings.has_complement else ("neighbour",):
            generator = weights_of(seed, name)
            layers = weights.layers(model.config, settings.decoder_layers, generator)
            setattr(self, name, layers)

    @classmethod
    def sides(cls, settings: Pretraining, unit: str) -> dict[str, Side]:
        """Mask both spans for the encoder, their own decoder and the other span's decoder.

        The encoder's second pass and its decoder have sides of their own.
        """
        sides = super().sides(settings, unit)
        sides["neighbour"] = sides["decoder"]
        if settings.has_complement:
            sides["second"] = replace(sides["encoder"], ratio=settings.complement_ratio)
            sides["complement"] = sides["encoder"]
        return sides

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return L = L_enc + L_own + L_next, plus the losses of the second pass.

        The curve shows all but the first as the decoder's loss.
        """
        encoder = batch["encoder"]
        own = batch["decoder"]
        neighbour = batch["neighbour"]
        h_c, encoded = self.encode(encoder, generator)
        restored = self.decode(h_c, own, generator)
        following = self.decode(h_c, neighbour, generator, self.neighbour)
        predicted = [(encoded, encoder), (restored, own), (following, neighbour)]
        if self.settings.has_complement:
            second = batch["second"]
            rest = batch["complement"]
            vectors, encoded = self.encode(second, generator)
            seen = self.decode(vectors, rest, generator, self.complement)
            predicted += [(encoded, second), (seen, rest)]
        return self.losses(batch, h_c, *predicted)
