"""The information about a passage in its vector, measured at a few steps of pre-training.

``bottleneck.tsv`` has the losses of a decoder, in nats, with the right vector, a wrong vector and
none. If the three are equal, the decoder does not use the vector, and it teaches the encoder
nothing. The same passages are measured each time, without gradients or random numbers: training is
bit-identical with and without it. If there are several decoders, the first is measured.

    B passages of a micro-batch, D dimensions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from cdmae.models import architectures
from cdmae.pretraining.objectives._prediction import predict

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Batch
    from cdmae.pretraining.reader import Reader

TABLE = "bottleneck.tsv"
VECTORS = ("true", "shuffled", "zero")
LOOKS = 5  # the first, the last and some in between: 1 % of the time of a small training


def steps(last: int) -> set[int]:
    """Return the measured steps of a training that ends with the step `last`."""
    return set(np.linspace(0, last, LOOKS).astype(int).tolist())


def sample(reader: Reader, rows: int, device: torch.device) -> Batch | None:
    """Return as many passages of the first step as fit into `rows`, those of medium length.

    Returns None for a single passage, which has no neighbour.
    """
    (first,) = reader.read(0, 1)
    batches = list(first.batches(rows, device))  # from short to long passages
    batch = batches[len(batches) // 2]
    return batch if batch.range.stop - batch.range.start > reader.spans else None


@torch.no_grad()
def decoder_losses(network: nn.Module, batch: Batch, spans: int) -> dict[str, float]:
    """Return the decoder's mean losses in nats with the true h_b [B, D], a neighbour's, and 0.

    The neighbour is a text of another passage. spans: texts per passage.
    """
    view = batch["decoder"]
    h_b = network.bottleneck(network.encode(batch["encoder"])[0])
    vectors = (h_b, h_b.roll(spans, 0), torch.zeros_like(h_b))
    losses = {}
    for name, vector in zip(VECTORS, vectors, strict=True):
        states = network.decode(vector, view)
        total = predict(architectures.head(network.model), states, view.labels, view.weights)[0]
        losses[name] = float(total / view.weights.sum())
    return losses
