"""Quality of the vectors for search before fine-tuning: one half of a passage finds the other.

The first halves of a sample of passages are the queries, and the second halves are the passages to
be found. Their vectors are compared by dot product, as in retrieval. If a vector represents the
topic of its text, the other half ranks first. This probe (`cdmae.pretraining.probes`) suits any
objective and collection, and uses the same passages each time. Their number is limited, which
limits the cost on large collections.

    n passages, D dimensions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae.models import packed, sequences, transformer
from cdmae.models.ragged import Ragged
from cdmae.pretraining.reader import word_begins

if TYPE_CHECKING:
    from cdmae.pretraining.reader import Reader

PASSAGES = 2000  # maximum number of passages
LEAST = 16  # minimum word-pieces of a passage; shorter halves are uninformative
DEPTH = 10  # of MRR@10
BUDGET = {"cpu": 1 << 13, "cuda": 1 << 17}  # word-pieces computed together


def prepare(network: nn.Module, reader: Reader, rows: int, device: torch.device) -> Ragged | None:
    """Return framed halves; None if fewer than two passages are long enough.

    `rows` limits training steps, which need far more memory per word-piece.
    """
    del network, rows, device
    read = halves(reader)
    return read if len(read) >= 4 else None


def measure(network: nn.Module, read: Ragged) -> dict[str, float]:
    """Return MRR@10 of the halves, and the number of passages."""
    vectors = encode(network.model.base_model, read, network.settings.pooling)
    return {"rr": reciprocal_rank(vectors[::2], vectors[1::2]), "passages": len(vectors) // 2}


def halves(reader: Reader) -> Ragged:
    """Return framed halves of evenly spaced passages, in the order first, second, first, ...

    A passage is cut as in training, then halved before the word that holds its middle.
    """
    lengths = np.diff(reader.tokens.starts)
    long = np.flatnonzero(lengths >= min(LEAST, reader.length))
    evenly = np.linspace(0, max(0, len(long) - 1), min(len(long), PASSAGES)).astype(np.int64)
    rows = long[np.unique(evenly)]
    whole = Ragged(reader.tokens.ids, reader.tokens.starts).take(rows, reader.length)
    begins = whole.starts[:-1]
    middles = begins + whole.lengths // 2
    cuts = word_begins(middles, begins, whole.values, reader.vocabulary.word_starts)
    bounds = np.append(np.stack([begins, cuts], axis=1).ravel(), whole.starts[-1])
    return sequences.frame(Ragged(whole.values, bounds), reader.vocabulary)


@torch.no_grad()
def encode(model: nn.Module, read: Ragged, pooling: str = "cls") -> Tensor:
    """Return the vectors of sequences, float32 [2 n, D]."""
    device = model.device
    vectors = torch.empty(len(read), model.config.hidden_size, device=device)
    for rows in sequences.chunks(read.lengths, BUDGET[device.type]):
        part = transformer.vectors(model, packed.pack(read.take(rows), device), pooling)
        vectors[torch.from_numpy(rows).to(device)] = part.float()
    return vectors


def reciprocal_rank(queries: Tensor, passages: Tensor) -> float:
    """Return MRR@10 of passage i for query i, both [n, D]; the correct passage loses all ties.

    The value expected by chance is H_10 / n, which is 2.93 / n.
    """
    # bfloat16 cannot distinguish scores that are so close to each other.
    with torch.autocast(queries.device.type, enabled=False):
        scores = queries @ passages.T
    ranks = (scores >= scores.diagonal()[:, None]).sum(1)
    return float(torch.where(ranks <= DEPTH, 1 / ranks, 0.0).mean())
