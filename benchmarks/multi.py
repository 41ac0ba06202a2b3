"""Compare a fine-tuning step of a multi-vector retriever with sentence-transformers.

    python -m benchmarks.multi                      32 x 4 passages of 64
    python -m benchmarks.multi --size tiny          passages of 144
    python -m benchmarks.multi --queries 8 --group 2           seconds

Texts, weights and processes are the same as in `benchmarks.finetuning`, except that queries are
filled up to 32 word-pieces, as in ColBERT. Fails unless every form has the loss of the padded
batch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertModel

from benchmarks import finetuning
from benchmarks.finetuning import SIZES, batch, columns, padded, seeded
from benchmarks.finetuning import network as encoder_of
from benchmarks.forms import ONE_CHUNK, chunk_of
from cdmae.config.heads import Multi
from cdmae.finetuning import losses, retriever
from cdmae.finetuning.objectives import Objective
from cdmae.models import linear
from cdmae.models.heads import multi
from cdmae.models.ragged import Ragged, joined
from cdmae.training.ranks import Ranks

DIMENSIONS = 128
MASK = 4  # the word-piece that fills queries
FORMS = {
    "padded": "padded, all products kept",
    "loss": "MultiVectorMultipleNegativesRankingLoss",
    "cached_loss": "CachedMultiVectorMultipleNegativesRankingLoss",
    "ours": "ours: packed, sorted chunks, gradient caching",
    f"ours{ONE_CHUNK}": "ours: packed, one chunk",
}


class ColBERT(nn.Module):
    """A model with the interface that sentence-transformers calls."""

    def __init__(self, model: BertModel) -> None:
        """Wrap an encoder with a projection."""
        super().__init__()
        self.model = model

    def forward(self, features: dict[str, Tensor], task: str | None = None) -> dict[str, Tensor]:
        """Compute the vectors of a padded batch; queries and passages are treated alike."""
        del task
        inputs = {name: features[name] for name in ("input_ids", "attention_mask")}
        projected = self.model.projection(self.model(**inputs).last_hidden_state)
        vectors = functional.normalize(projected, dim=-1)
        return {"token_embeddings": vectors, "attention_mask": inputs["attention_mask"]}


def network(size: str) -> BertModel:
    """Make an encoder with a projection and random weights, the same in every process."""
    made = encoder_of(size)
    with seeded():
        linear.start(made, multi.layers({"match": "any", "dimensions": DIMENSIONS}), seed=1)
    return made


def filled(size: str, queries: int, group: int) -> retriever.Batch:
    """Draw a step of random texts, with queries filled up; all word-pieces have vectors."""
    work = batch(size, queries, group)
    length = SIZES[size][3]
    asked = work.sequences.cut(slice(0, queries))
    longer = [
        np.append(asked.values[first:last], [MASK] * (length - (last - first)))
        for first, last in zip(asked.starts, asked.starts[1:], strict=False)
    ]
    both = joined(Ragged.of(longer), work.sequences.cut(slice(queries, len(work.sequences))))
    flags = np.zeros(len(both.values), np.uint8)
    return retriever.Batch(Ragged(both.values, both.starts, flags=flags), queries, None, None)


def loss_by_hand(model: BertModel, work: retriever.Batch) -> Tensor:
    """Return the loss of the padded batch, with the products of all pairs of vectors."""
    encoder = ColBERT(model)
    count = work.queries
    queries = encoder(padded(work.sequences, np.arange(count)))
    passages = encoder(padded(work.sequences, np.arange(count, len(work.sequences))))
    products = torch.einsum(
        "qid,pjd->qpij", queries["token_embeddings"], passages["token_embeddings"]
    )
    absent = passages["attention_mask"][None, :, None] == 0
    maxima = products.masked_fill(absent, -torch.inf).amax(-1)
    return losses.in_batch_loss((maxima * queries["attention_mask"][:, None]).sum(-1))


def loss_of_theirs(model: BertModel, work: retriever.Batch, chunk: int, *, cached: bool) -> Tensor:
    """Return sentence-transformers' loss, with a column of passages per position in a group."""
    from sentence_transformers.multi_vector_encoder import losses as theirs

    encoder = ColBERT(model).train()
    if cached:
        loss = theirs.CachedMultiVectorMultipleNegativesRankingLoss(encoder, mini_batch_size=chunk)
    else:
        loss = theirs.MultiVectorMultipleNegativesRankingLoss(encoder)
    return loss(columns(work))


def step(form: str, model: BertModel, work: retriever.Batch, given: argparse.Namespace) -> float:
    """Compute the loss and its gradient."""
    if form.startswith("ours"):
        stage = Multi(
            collection="c",
            chunk=chunk_of(form, given.chunk, work.sequences),
            dimensions=DIMENSIONS,
            passage_length=SIZES[given.size][4],
            precision="fp32",
        )
        objective = Objective(stage)
        return retriever.learn(model, work, objective, Ranks(), seed=1, step=0)["loss"].item()
    if form == "padded":
        value = loss_by_hand(model, work)
    else:
        value = loss_of_theirs(model, work, given.chunk, cached=form.startswith("cached"))
    value.backward()
    return value.item()


def start(form: str, given: argparse.Namespace) -> Callable[[], float]:
    """Return a form's step, which returns its loss."""
    return finetuning.start(form, given, network, filled, step)


if __name__ == "__main__":
    finetuning.main(start, FORMS, __doc__, "default", queries=32, group=4)
