"""Compare a fine-tuning step of a retriever with the simplest good form and sentence-transformers.

    python -m benchmarks.finetuning        64 x 32 passages, an encoder of 2 x 128: two minutes
    python -m benchmarks.finetuning --queries 16 --group 8       seconds
    python -m benchmarks.finetuning --size default --queries 128 --group 2 --chunk 512
        the default config's training
    python -m benchmarks.finetuning --size base --queries 8 --group 8    12 x 768, on a GPU's scale

The simplest good form is gradient caching over transformers' modules with SDPA, in padded chunks of
similar lengths. There is no dropout. Lengths follow MS MARCO: passages have 76 word-pieces on
average and at most 144, queries have 9. Fails unless all forms have the same loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification, BertModel

from benchmarks import forms
from benchmarks.naive import tensor
from cdmae.config.heads import Dense
from cdmae.finetuning import losses, retriever
from cdmae.finetuning.objectives import Objective
from cdmae.models.ragged import Ragged
from cdmae.training import setup
from cdmae.training.ranks import Ranks

SIZES = {  # layers, width, vocabulary, longest query and passage
    "default": (2, 128, 4096, 32, 64),
    "tiny": (2, 128, 4096, 32, 144),
    "small": (4, 256, 4096, 32, 64),
    "base": (12, 768, 30522, 32, 144),
}
FORMS = {
    "sorted": "transformers, sorted chunks, gradient caching",
    "sorted_bf16": "transformers, sorted chunks, gradient caching",
    "sentence_transformers": "CachedMultipleNegativesRankingLoss",
    "sentence_transformers_bf16": "CachedMultipleNegativesRankingLoss",
    "ours": "ours",
    "ours_bf16": "ours",
}


def lengths(count: int, mean: float, longest: int, generator: np.random.Generator) -> np.ndarray:
    """Draw lengths from a long-tailed distribution, truncated at `longest`."""
    return np.clip(np.exp(generator.normal(np.log(mean * 0.93), 0.38, count)), 5, longest).astype(
        np.int64
    )


def batch(size: str, queries: int, group: int) -> retriever.Batch:
    """Draw a step of random texts."""
    layers, _, vocabulary, longest_query, longest = SIZES[size]
    generator = np.random.default_rng(1)
    scale = longest / 144
    every = np.concatenate(
        [
            lengths(queries, 9, longest_query, generator),
            lengths(queries * group, 78 * scale, longest, generator),
        ]
    )
    starts = np.concatenate([[0], np.cumsum(every)])
    ids = generator.integers(5, vocabulary, starts[-1])
    return retriever.Batch(Ragged(ids, starts), queries, None, None)


def pairs(size: str, count: int) -> Ragged:
    """Draw random pairs for a reranker, with the lengths of passages."""
    drawn = batch(size, 1, count).sequences.take(np.arange(1, count + 1))
    return Ragged(drawn.values, drawn.starts, np.zeros_like(drawn.values))


def network(size: str) -> BertModel:
    """Make an encoder with random weights, the same in every process, without dropout."""
    with seeded():
        return BertModel(config_of(size), add_pooling_layer=False)


def cross_encoder(size: str) -> BertForSequenceClassification:
    """Make a reranker with random weights, the same in every process, without dropout."""
    with seeded():
        return BertForSequenceClassification(config_of(size))


@contextmanager
def seeded() -> Iterator[None]:
    """Draw weights from a fixed seed, without changing the global generator."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        yield


def config_of(size: str) -> BertConfig:
    """Return the configuration of a size."""
    layers, width, vocabulary, _, longest = SIZES[size]
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=max(512, longest),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=1,
    )


def padded(read: Ragged, rows: np.ndarray) -> dict[str, Tensor]:
    """Write some sequences as a padded batch for transformers, on torch's default device."""
    lengths = read.lengths[rows]
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = read.take(rows).values
    return {"input_ids": tensor(ids), "attention_mask": tensor(mask.astype(np.int64))}


def loss_of(vectors: Tensor, queries: int) -> Tensor:
    """Compute equation 10 for the vectors of all queries, followed by all passages."""
    passages = vectors[queries:].view(queries, -1, vectors.shape[1])
    return losses.contrastive(vectors[:queries], passages)


def columns(work: retriever.Batch) -> list[dict[str, Tensor]]:
    """Return a padded batch of the queries, and one for each rank of passages in a group."""
    read = work.sequences
    queries = work.queries
    group = len(read) // queries - 1
    ranks = [np.arange(queries + rank, len(read), group) for rank in range(group)]
    return [padded(read, rows) for rows in (np.arange(queries), *ranks)]


class Vectors(nn.Module):
    """An encoder with the interface that sentence-transformers calls."""

    def __init__(self, model: BertModel) -> None:
        """Wrap a model that computes the vectors."""
        super().__init__()
        self.model = model

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute the vectors of a padded batch."""
        return {"sentence_embedding": self.model(**features).last_hidden_state[:, 0]}


def sorted_step(model: BertModel, work: retriever.Batch, chunk: int) -> float:
    """Run a step with gradient caching, in padded chunks that are sorted by length."""
    read = work.sequences
    order = np.argsort(read.lengths, kind="stable")
    cuts = [order[first : first + chunk] for first in range(0, len(order), chunk)]

    def encode(rows: np.ndarray) -> Tensor:
        return model(**padded(read, rows)).last_hidden_state[:, 0]

    with torch.no_grad():
        found = torch.cat([encode(rows).float() for rows in cuts])
    vectors = torch.empty_like(found)
    vectors[np.concatenate(cuts)] = found
    loss = loss_of(vectors.requires_grad_(), work.queries)
    loss.backward()
    for rows in cuts:
        encode(rows).backward(vectors.grad[rows])
    return loss.item()


def cached_step(model: BertModel, work: retriever.Batch, chunk: int) -> float:
    """Run a step of sentence-transformers' cached loss."""
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
    from sentence_transformers.util import dot_score

    encoder = nn.Sequential(Vectors(model))
    cached = CachedMultipleNegativesRankingLoss(encoder, 1.0, dot_score, mini_batch_size=chunk)
    loss = cached(columns(work), torch.empty(0))
    loss.backward()
    return loss.item()


def step(form: str, model: BertModel, work: retriever.Batch, given: argparse.Namespace) -> float:
    """Run one forward and backward pass; return the loss."""
    if form.startswith("ours"):
        stage = Dense(
            collection="c",
            chunk=given.chunk,
            passage_length=SIZES[given.size][4],
            precision=forms.precision(form),
        )
        objective = Objective(stage)
        return retriever.learn(model, work, objective, Ranks(), seed=1, step=0)["loss"].item()
    learn = sorted_step if form.startswith("sorted") else cached_step
    with setup.autocast(forms.precision(form), torch.device("cpu")):
        return learn(model, work, given.chunk)


def start(
    form: str,
    given: argparse.Namespace,
    network: Callable[[str], nn.Module] = network,
    batch: Callable[[str, int, int], retriever.Batch] = batch,
    step: Callable[..., float] = step,
) -> Callable[[], float]:
    """Return a form's step, which returns its loss."""
    model = network(given.size)
    work = batch(given.size, given.queries, given.group)

    def once() -> float:
        model.zero_grad(set_to_none=False)
        return step(form, model, work, given)

    return once


def main(
    start: forms.Start, titles: dict[str, str], description: str, size: str, **sizes: int
) -> None:
    """Read the command line, measure every form, and print the table."""
    parser = forms.parser(description, chunk=64, **sizes)
    parser.add_argument("--size", choices=SIZES, default=size)
    given = parser.parse_args()
    title = (
        f"{given.size}: {SIZES[given.size][:3]}, {given.queries} queries x {given.group} passages, "
        f"chunks of {given.chunk}"
    )
    forms.compare(start, titles, given, title)


if __name__ == "__main__":
    main(start, FORMS, __doc__, "tiny", queries=64, group=32)
