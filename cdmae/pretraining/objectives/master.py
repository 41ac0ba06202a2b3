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
docT5query's queries and GPT-2's continuations). Collections do not contain these: `texts` names a
file for each decoder. Both spans' vectors restore the text of their passage.

That code also encodes the whole passage for the first and the third decoder, and its first half
again for the second. Here the encoder reads spans only.

    B spans, M masked rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from torch import Generator, Tensor, nn

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.masking.noise import uniforms
from cdmae.models import weights
from cdmae.pretraining import further
from cdmae.pretraining.batches import Batch, Masked, Texts
from cdmae.pretraining.objectives._contexts import Contexts, exchanged
from cdmae.pretraining.objectives._parts import weights_of
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.masking import Corpus, Side
    from cdmae.pretraining.further import Asked


class Tasks(Contexts):
    """Reads two spans of each passage; each decoder has a text of its own."""

    read_at_cls = ("encoder", "second")

    def __init__(
        self,
        settings: Pretraining,
        sides: dict[str, Side],
        corpus: Corpus,
        seed: int,
        written: Sequence[Asked] = (),
    ) -> None:
        """Read the written texts, unless they are given, one entry per file."""
        if settings.texts:
            written = written or further.written(settings.texts, corpus)
        self.written = written
        super().__init__(
            settings, sides, corpus, seed, store=written[0].tokens if written else None
        )

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Apply equation 1 to a decoder's own texts; its `complement` restores all others."""
        if name == "neighbour":
            texts = exchanged(texts)
        if name.startswith("text"):
            texts = self.of_files(name, texts)
        if name != "complement":
            return super().mask(name, texts, others)
        side = self.sides[name]
        batch = self.batch_of(texts, side)
        chosen = batch.candidates & ~others["second"].grid()
        keys = self.keys(name, texts.epochs)
        ids = masking.corrupt(batch, chosen, side, self.vocabulary, keys)
        return self.framed(texts, batch, ids, chosen)

    def of_files(self, name: str, texts: Texts) -> Texts:
        """Return a written text of each text's passage, drawn per epoch, with the text's number."""
        source = self.written[int(name.removeprefix("text"))]
        rows = texts.rows % len(self.tokens)
        draws = uniforms(self.keys(f"{name} text", texts.epochs), rows, 1, salt=1)[:, 0]
        found = source.drawn(rows, draws)
        lengths = np.minimum(self.lengths[found], self.length)
        return Texts(texts.rows, self.store.starts[found], lengths, texts.epochs)


class Master(Mae):
    """Encoder, and a decoder for each task."""

    name = "master"
    reader = Tasks

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Draw the weights of all decoders with `seed`."""
        super().__init__(model, settings, seed)
        self.neighbour = weights.layers(
            model.config, settings.decoder_layers, weights_of(seed, "neighbour")
        )
        if settings.has_complement:
            self.complement = weights.layers(
                model.config, settings.decoder_layers, weights_of(seed, "complement")
            )
        self.texts = nn.ModuleDict()
        for number in range(len(settings.texts)):
            generator = weights_of(seed, f"text{number}")
            layers = weights.layers(model.config, settings.decoder_layers, generator)
            self.texts[f"text{number}"] = layers

    @property
    def guessing(self) -> float:
        """Return the value of each loss for a model that guesses; it grows with the decoders.

        The decoders' losses are shown as one.
        """
        return super().guessing * (1 + self.settings.has_complement + len(self.texts) / 2)

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Mask both spans for the encoder, their own decoder and the other span's decoder.

        The encoder's second pass, its decoder and each file of `texts` have sides of their own.
        """
        sides = masking.sides(settings, unit)
        decoder = sides["decoder"]
        sides["neighbour"] = decoder
        if settings.has_complement:
            sides["second"] = replace(sides["encoder"], ratio=settings.complement_ratio)
            sides["complement"] = sides["encoder"]
        for number in range(len(settings.texts)):
            sides[f"text{number}"] = decoder
        return sides

    def forward(
        self, batch: Batch, generator: Generator | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return L = L_enc + L_own + L_next, plus the losses of the second pass and of texts.

        The curve shows all but the first as the decoder's loss.
        """
        encoder = batch["encoder"]
        own = batch["decoder"]
        neighbour = batch["neighbour"]
        h_c, encoded = self.encode(encoder, generator)
        restored = self.decode(h_c, own, generator)
        following = self.decode(h_c, neighbour, generator, self.neighbour)
        further = []
        if self.settings.has_complement:
            second = batch["second"]
            rest = batch["complement"]
            vectors, predicted = self.encode(second, generator)
            seen = self.decode(vectors, rest, generator, self.complement)
            further += [(predicted, second), (seen, rest)]
        for side, layers in self.texts.items():
            further.append((self.decode(h_c, batch[side], generator, layers), batch[side]))
        return self.losses(
            batch, h_c, (encoded, encoder), (restored, own), (following, neighbour), *further
        )
