"""Information in the bottleneck: decoder losses with the right vector, a wrong vector and none.

If the three losses are equal, the decoder does not use the vector, and it teaches the encoder
nothing. Their differences measure the information about a passage in its vector. This probe
(`cdmae.pretraining.probes`) uses the same passages and masks each time. If there are several
decoders, it measures the first.

    B passages, D dimensions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from cdmae.models import architectures
from cdmae.pretraining.objectives._prediction import predict

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Batch
    from cdmae.pretraining.reader import Reader

VECTORS = ("true", "shuffled", "zero")


class Sample(NamedTuple):
    """Passages of the first step; spans: texts per passage."""

    batch: Batch
    spans: int = 1


def prepare(network: nn.Module, reader: Reader, rows: int, device: torch.device) -> Sample | None:
    """Take as many passages of the first step as fit into `rows`, those of medium length.

    Returns None for an objective that is not `probed`, and for a single passage, which has no
    neighbour.
    """
    if not network.probed:
        return None
    (first,) = reader.read(0, 1)
    batches = list(first.batches(rows, device))  # from short to long passages
    batch = batches[len(batches) // 2]
    alone = batch.range.stop - batch.range.start <= first.spans
    return None if alone else Sample(batch, first.spans)


@torch.no_grad()
def measure(network: nn.Module, sample: Sample) -> dict[str, float]:
    """Return the decoder's mean losses in nats with the true h_b [B, D], a neighbour's, and 0.

    The neighbour is a text of another passage.
    """
    view = sample.batch["decoder"]
    h_b = network.bottleneck(network.encode(sample.batch["encoder"])[0])
    measured = {}
    vectors = (h_b, h_b.roll(sample.spans, 0), torch.zeros_like(h_b))
    for name, vector in zip(VECTORS, vectors, strict=True):
        states = network.decode(vector, view)
        total = predict(architectures.head(network.model), states, view.labels, view.weights)[0]
        measured[name] = float(total / view.weights.sum())
    return measured
