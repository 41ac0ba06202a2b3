"""Contriever: the contrast of independent crops, by in-batch negatives (Izacard et al. 2022).

The objective reads two random crops of each passage, each with a few tokens deleted. The vector of
the first crop must score the second crop of its passage above the second crops of all other
passages of the global batch: L = -log exp(q_i . k_i / tau) / sum over j of exp(q_i . k_j / tau),
the mean over passages, as in the published code (facebookresearch/contriever, ``src/inbatch.py``).
The paper's larger variant takes its negatives from a queue of earlier batches (MoCo), which is not
implemented here.

There are no masks, and the LM head is not trained. The loss reads the whole global batch
(`cdmae.pretraining.objectives._contrast`).

    B crops of a micro-batch, N crops of the global batch, D dimensions
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from cdmae import masking
from cdmae.models import architectures
from cdmae.pretraining.objectives import _contrast
from cdmae.pretraining.objectives._parts import Objective, spread

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.encoders import Pretraining
    from cdmae.pretraining.batches import Batch, View
    from cdmae.training.ranks import Ranks


class Contriever(Objective):
    """The encoder alone."""

    name = "contriever"
    shown = ("encoder_loss",)

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Build the objective around an encoder; its LM head keeps its weights."""
        super().__init__(model, settings, seed)
        head = architectures.head(model)
        for part in (head.dense, head.norm):
            part.requires_grad_(False)
        if isinstance(head.output.bias, nn.Parameter):  # its matrix is the embeddings' matrix
            head.output.bias.requires_grad_(False)

    @property
    def guessing(self) -> float:
        """Return infinity: dot products of untrained vectors have no bound; see `spread`."""
        return math.inf

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Return two crops of each passage, in which nothing is predicted."""
        crops = (settings.crop_least, settings.crop_most)
        return {"encoder": masking.Side("", 0.0, spans=2, crops=crops, deleted=settings.deletion)}

    def prepare(
        self, batches: list[Batch], generators: list[Generator | None], group: Ranks
    ) -> list[Batch]:
        """Store the loss, and its gradient with respect to the vectors, in micro-batches."""
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
        loss = batch.share * batch.common
        return loss + _contrast.pulled(vectors, batch), {
            "encoder_loss": loss,
            "decoder_loss": torch.zeros_like(loss),
            "spread": spread(vectors) * batch.share,
        }

    def vectors(self, view: View, generator: Generator | None) -> Tensor:
        """Return the crops' vectors [B, D]."""
        return self.encode(view, generator)[0]


def contrast(vectors: Tensor, temperature: float) -> Tensor:
    """Return the loss of crops [N, D], 0-d; crops 2 i and 2 i + 1 come from one passage."""
    queries = vectors[::2]
    passages = vectors[1::2]
    scores = queries @ passages.T / temperature
    return functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
