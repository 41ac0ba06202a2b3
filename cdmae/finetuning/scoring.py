"""The vectors of a batch by a model that is not trained, and the scores of queries with passages.

It is the student before its training, or a second teacher: a trained retriever with the same
tokenizer, whose margins in the whole batch the student learns (TAS-B, Hofstätter et al. 2021).

Shapes: `B` queries, `N` passages per query, `n` vectors, `D` dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cdmae.finetuning import late
from cdmae.finetuning.late import Texts
from cdmae.finetuning.objectives import Batch
from cdmae.models import heads, packed, sequences
from cdmae.models.heads import sparse
from cdmae.training import setup

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model


@torch.no_grad()
def encoded(model: Model, batch: Batch, budget: int, seed: int | None = None) -> Tensor:
    """Return the vectors of a batch's sequences, one after another: float32 [n, D].

    budget: word-pieces that are encoded at a time. seed: of dropout; None: without dropout.
    """
    network = model.network
    device = next(network.parameters()).device
    head = heads.of(model.head)
    read = batch.sequences
    rows = batch.rows
    vectors = torch.empty(len(rows.values), head.width(network), device=device)
    for chunk, cut in enumerate(sequences.chunks(read.lengths, budget)):
        generator = None
        if seed is not None:
            generator = setup.generator(device, seed, "dropout", 0, chunk, 0)
        texts = packed.pack(read.take(cut), device)
        made = head.vectors(network, texts, model, generator=generator)
        vectors[packed.put(rows.take(cut).values, device)] = made.float()
    return vectors


def all_scores(model: Model, batch: Batch, budget: int, seed: int | None = None) -> Tensor:
    """Return the score of each query of a batch with all passages, float32 [B, B x N].

    budget, seed: as for `encoded`.
    """
    vectors = encoded(model, batch, budget, seed)
    # Vectors may be computed in bfloat16, but scores in bfloat16 tie.
    with torch.autocast(vectors.device.type, enabled=False):
        texts = batch.texts(vectors)
        if isinstance(texts, Texts):
            return late.scores(*texts.divided(batch.queries), model.match)
        asked = texts[: batch.queries]
        if model.head == "unified":
            words = sparse.width(model.network)
            asked[:, words:] *= model.dense_weight
        return asked @ texts[batch.queries :].T
