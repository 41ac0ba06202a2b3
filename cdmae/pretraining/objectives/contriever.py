"""Contriever: the contrast of two parts of a passage (Izacard et al. 2022).

The objective reads two random crops of each passage, each with a few tokens deleted. With `cut:
cloze` the second part is the passage without the first crop (inverse cloze). The vector of the
first part, q, must score its passage's second part, k, above the second parts of other passages.
There are no masks, and the LM head is not trained.

In-batch negatives (``src/inbatch.py`` of facebookresearch/contriever): the other passages are all
passages of the global batch. L = -log exp(q_i . k_i / tau) / sum over j of exp(q_i . k_j / tau),
the mean over passages (`cdmae.pretraining.objectives._contrast`).

A queue (MoCo, ``src/moco.py``): the other passages are those of earlier batches. A slower copy of
the encoder computes k, without gradient and without dropout. Before each step its weights become
m x its own + (1 - m) x the encoder's. The vectors k of a step then replace the oldest batch in the
queue, which at first has random vectors of length 1. L = -log exp(q . k / tau) / (exp(q . k / tau)
+ sum over the queue's n of exp(q . n / tau)). Queue and copy belong to the training state.

    B parts of a micro-batch, N parts of the global batch, Q vectors in the queue, D dimensions
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from cdmae import masking
from cdmae.masking.noise import uniforms
from cdmae.models import architectures, transformer
from cdmae.pretraining.batches import Texts
from cdmae.pretraining.objectives import _contrast
from cdmae.pretraining.objectives._contexts import pairs
from cdmae.pretraining.objectives._parts import Objective, spread, weights_of
from cdmae.pretraining.reader import Reader

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.encoders import Pretraining
    from cdmae.pretraining.batches import Batch, Masked, View
    from cdmae.training.ranks import Ranks

DELETE = 4  # the salt of the random stream


class Crops(Reader):
    """Reads two parts of each passage with a few tokens deleted, and masks nothing.

    Without a queue, one side has both parts; with a queue, each part has a side of its own.
    """

    @property
    def spans(self) -> int:
        """Return the number of parts of a passage on a side."""
        return self.settings.spans

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return the parts of each passage, or with a queue the whole passages."""
        whole = super().texts(rows, epochs)
        return whole if self.settings.queue else self.parts(whole)

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Delete tokens; nothing is predicted."""
        if self.settings.queue:
            texts = self.parts(texts)[int(name == "passage") :: 2]
        batch = self.batch_of(texts, self.sides[name])
        kept = batch.real
        if self.settings.cut == "cloze":
            kept &= ~self.first_crops(texts, batch.ids.shape[1])
        if self.settings.deletion:
            keys = self.keys(name, texts.epochs)
            draws = uniforms(keys, batch.rows, batch.ids.shape[1], salt=DELETE)
            kept &= draws >= self.settings.deletion
        return self.framed(texts, batch, batch.ids, np.zeros_like(batch.candidates), kept)

    def parts(self, whole: Texts) -> Texts:
        """Return two crops of each passage.

        If the second part is the rest of the passage, its range is the whole passage, from which
        `mask` removes the first crop.
        """
        offsets, sizes = self.crops(whole)
        if self.settings.cut == "cloze":
            offsets[:, 1] = 0
            sizes[:, 1] = whole.lengths
        begins = whole.begins[:, None] + offsets
        return pairs(whole.rows, begins, sizes, whole.epochs, len(self.tokens))

    def crops(self, whole: Texts) -> tuple[np.ndarray, np.ndarray]:
        """Draw two independent crops of each passage: offsets and lengths, int64 [B, 2].

        A crop's share of the passage is uniform, then its position; a crop has at least one
        word-piece, if the passage has any.
        """
        draws = uniforms(self.keys("crop", whole.epochs), whole.rows, 4, salt=1).astype(np.float64)
        least = self.settings.crop_least
        lengths = whole.lengths[:, None]
        shares = least + draws[:, :2] * (self.settings.crop_most - least)
        sizes = np.minimum(lengths, np.maximum(1, np.floor(shares * lengths))).astype(np.int64)
        offsets = np.floor(draws[:, 2:] * (lengths - sizes + 1)).astype(np.int64)
        return offsets, sizes

    def first_crops(self, texts: Texts, width: int) -> np.ndarray:
        """Mark the first crops in the ranges of the second parts, whole passages: bool [B, n]."""
        second = texts.rows >= len(self.tokens)
        whole = Texts(
            texts.rows - second * len(self.tokens), texts.begins, texts.lengths, texts.epochs
        )
        offsets, sizes = self.crops(whole)
        positions = np.arange(width)
        begin = offsets[:, :1]
        inside = (positions >= begin) & (positions < begin + sizes[:, :1])
        return inside & second[:, None]


class Contriever(Objective):
    """The encoder; with a queue, also its slower copy and the queue.

    keys: [Q + N, D], the vectors of the newest batch and the queue, in a ring. newest: the index of
    the newest batch's first vector.
    """

    name = "contriever"
    reader = Crops
    shown = ("encoder_loss",)

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Build the objective around an encoder; its LM head keeps its weights."""
        super().__init__(model, settings, seed)
        head = architectures.head(model)
        for part in (head.dense, head.norm):
            part.requires_grad_(False)
        if isinstance(head.output.bias, nn.Parameter):
            head.output.bias.requires_grad_(False)
        if head.output.weight is not model.get_input_embeddings().weight:
            head.output.weight.requires_grad_(False)
        if settings.queue:
            self.slower = copy.deepcopy(model.base_model).requires_grad_(False)
            size = (settings.queue + settings.batch, model.config.hidden_size)
            drawn = torch.randn(size, generator=weights_of(seed, "queue"))
            self.register_buffer("keys", functional.normalize(drawn, dim=1))
            self.register_buffer("newest", torch.zeros((), dtype=torch.int64))

    @property
    def guessing(self) -> float:
        """Return infinity: dot products of untrained vectors have no bound; see `spread`."""
        return math.inf

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Return one side, or with a queue two, because the slower copy reads the second part."""
        names = ("encoder", "passage") if settings.queue else ("encoder",)
        return dict.fromkeys(names, masking.PLAIN)

    def prepare(
        self, batches: list[Batch], generators: list[Generator | None], group: Ranks
    ) -> list[Batch]:
        """Store the loss, and its gradient with respect to the vectors, in micro-batches.

        With a queue, update it instead.
        """
        if self.settings.queue:
            self.enqueue(batches, group)
            return batches
        return _contrast.prepared(
            batches,
            generators,
            group,
            encode=self.vectors,
            contrast=lambda vectors: contrast(vectors, self.settings.temperature),
            width=self.model.config.hidden_size,
        )

    def forward(
        self, batch: Batch, generator: Generator | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss, shown as the encoder's in the curve; the batch comes from `prepare`."""
        vectors = self.vectors(batch["encoder"], generator)
        if self.settings.queue:
            learnt = batch.share * self.contrast_with_queue(vectors, batch)
            loss = learnt.detach()
        else:
            loss = batch.share * batch.common
            learnt = loss + _contrast.pulled(vectors, batch)
        return learnt, {
            "encoder_loss": loss,
            "decoder_loss": torch.zeros_like(loss),
            "spread": spread(vectors) * batch.share,
        }

    def vectors(self, view: View, generator: Generator | None) -> Tensor:
        """Return the vectors of the parts that the trained encoder reads [B, D]."""
        return self.encode(view, generator)[0]

    # --- the queue --------------------------------------------------------------------------------

    @torch.no_grad()
    def enqueue(self, batches: list[Batch], group: Ranks) -> None:
        """Move the slower copy towards the encoder; replace the oldest vectors by the batch's."""
        own = self.slower.parameters()
        for weight, target in zip(own, self.model.base_model.parameters(), strict=True):
            weight.lerp_(target, 1 - self.settings.momentum)
        new = self.keys.new_zeros(batches[0].whole, self.keys.shape[1])
        for batch in batches:
            inputs = batch["passage"].inputs
            encoded = transformer.vectors(self.slower, inputs, self.settings.pooling)
            new[batch.range] = encoded.float()
        group.add_up([new])  # each row is 0 in all processes except one
        self.newest.add_(len(new)).remainder_(len(self.keys))
        self.keys.index_copy_(0, self.newest + torch.arange(len(new), device=new.device), new)

    def contrast_with_queue(self, vectors: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss, 0-d, of the vectors [B, D] of each passage's first crop."""
        index = torch.arange(len(self.keys), device=vectors.device)
        own = self.newest + index[batch.range]
        # the rest of the newest batch is not in the queue yet
        others = (index >= self.newest) & (index < self.newest + batch.whole)
        with torch.autocast(vectors.device.type, enabled=False):
            scores = vectors.float() @ self.keys.T / self.settings.temperature
            hidden = others & (index != own[:, None])
            return functional.cross_entropy(scores.masked_fill(hidden, -torch.inf), own)


def contrast(vectors: Tensor, temperature: float) -> Tensor:
    """Return the loss of crops [N, D], 0-d; crops 2 i and 2 i + 1 come from one passage."""
    queries = vectors[::2]
    passages = vectors[1::2]
    scores = queries @ passages.T / temperature
    return functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
