"""Compare a fine-tuning step of a sparse retriever with sentence-transformers.

    python -m benchmarks.sparse                     32 x 4 passages of 64, a vocabulary of 4,096
    python -m benchmarks.sparse --size tiny         passages of 144
    python -m benchmarks.sparse --queries 8 --group 2          seconds

Texts, weights and processes are the same as in `benchmarks.finetuning`. Fails unless every form has
the loss of the padded batch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertForMaskedLM

from benchmarks import finetuning
from benchmarks.finetuning import SIZES, batch, columns, config_of, padded, seeded
from benchmarks.forms import ONE_CHUNK, chunk_of
from cdmae.config.heads import Sparse
from cdmae.finetuning import losses, retriever
from cdmae.finetuning.objectives import Objective
from cdmae.finetuning.regulariser import Sparsity
from cdmae.training.ranks import Ranks

FORMS = {
    "padded": "padded, all logits kept",
    "splade_loss": "SpladeLoss",
    "cached_splade_loss": "CachedSpladeLoss",
    "ours": "ours: packed, sorted chunks, gradient caching",
    f"ours{ONE_CHUNK}": "ours: packed, one chunk",
}
FLOPS = 5e-3  # weight of both regularisers


class Splade(nn.Module):
    """Wrap a model for sentence-transformers, with sentence-transformers' own pooling."""

    def __init__(self, model: BertForMaskedLM) -> None:
        """Wrap `model`, which computes the logits."""
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        super().__init__()
        self.model = model
        self.pooling = SpladePooling("max")

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute the vectors of a padded batch."""
        inputs = {name: features[name] for name in ("input_ids", "attention_mask")}
        return self.pooling({**inputs, "token_embeddings": self.model(**inputs).logits})


def network(size: str) -> BertForMaskedLM:
    """Make a language model with random weights, the same in every process, without dropout."""
    with seeded():
        return BertForMaskedLM(config_of(size))


def loss_by_hand(model: BertForMaskedLM, work: retriever.Batch) -> Tensor:
    """Return the loss of the padded batch, with the logits of all its positions."""
    read = work.sequences
    queries = work.queries
    parts = [np.arange(queries), np.arange(queries, len(read))]
    found = []
    for rows in parts:
        inputs = padded(read, rows)
        weights = torch.log1p(torch.relu(model(**inputs).logits))
        found.append((weights * inputs["attention_mask"][..., None]).amax(1))
    passages = found[1].view(queries, -1, found[1].shape[1])
    loss = losses.contrastive(found[0], passages)
    return loss + FLOPS * (losses.flops(found[0]) + losses.flops(found[1]))


def loss_of_theirs(
    model: BertForMaskedLM, work: retriever.Batch, chunk: int, *, cached: bool
) -> Tensor:
    """Return sentence-transformers' loss, with a column of passages per position in a group."""
    from sentence_transformers.sparse_encoder import losses as theirs

    encoder = Splade(model).train()
    base = theirs.SparseMultipleNegativesRankingLoss(encoder)
    kind = theirs.CachedSpladeLoss if cached else theirs.SpladeLoss
    how = {"mini_batch_size": chunk} if cached else {}
    loss = kind(encoder, base, FLOPS, FLOPS, **how)
    parts = loss(columns(work), torch.empty(0))
    return torch.stack(list(parts.values())).sum()


def step(
    form: str, model: BertForMaskedLM, work: retriever.Batch, given: argparse.Namespace
) -> float:
    """Compute the loss and its gradient."""
    if form.startswith("ours"):
        stage = Sparse(
            collection="c",
            chunk=chunk_of(form, given.chunk, work.sequences),
            passage_length=SIZES[given.size][4],
            precision="fp32",
            query_flops=FLOPS,
            passage_flops=FLOPS,
            flops_warmup=0,
        )
        sparsity = Sparsity(stage, "ours", 1, model.config.vocab_size)
        objective = Objective(stage, sparsity)
        numbers = retriever.learn(model, work, objective, Ranks(), seed=1, step=0)
        return numbers["loss"].item()
    if form == "padded":
        value = loss_by_hand(model, work)
    else:
        value = loss_of_theirs(model, work, given.chunk, cached=form.startswith("cached"))
    value.backward()
    return value.item()


def start(form: str, given: argparse.Namespace) -> Callable[[], float]:
    """Return a form's step, which returns its loss."""
    return finetuning.start(form, given, network, batch, step)


if __name__ == "__main__":
    finetuning.main(start, FORMS, __doc__, "default", queries=32, group=4)
