"""Compare a fine-tuning step of a retriever with the simplest good form and sentence-transformers.

    python -m benchmarks.finetuning                     64 x 32 passages, an encoder of 2 x 128
    python -m benchmarks.finetuning --head sparse       32 x 4 passages of 64
    python -m benchmarks.finetuning --head multi        the same, queries filled up as in ColBERT
    python -m benchmarks.finetuning --queries 16 --group 8       seconds
    python -m benchmarks.finetuning --size base --queries 8 --group 8    12 x 768, on a GPU's scale

The simplest good form of a dense step is gradient caching over transformers' modules with SDPA, in
padded chunks of similar lengths; of the other heads, one padded batch. There is no dropout. Lengths
follow MS MARCO: passages have 76 word-pieces on average and at most 144, queries have 9. Fails
unless all forms have the same loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

from benchmarks import forms
from benchmarks.forms import ONE_CHUNK, chunk_of
from cdmae.config.stages import Dense, Multi, Retriever, Sparse
from cdmae.finetuning import losses
from cdmae.finetuning.objectives import Batch
from cdmae.finetuning.regulariser import Sparsity
from cdmae.finetuning.retriever import RetrieverTask
from cdmae.models import linear
from cdmae.models.checkpoint import Model
from cdmae.models.heads import multi
from cdmae.models.ragged import Ragged, joined
from cdmae.training import setup
from cdmae.training.ranks import Ranks
from tests.naive import tensor

SIZES = {  # layers, width, vocabulary, longest query and passage
    "default": (2, 128, 4096, 32, 64),
    "tiny": (2, 128, 4096, 32, 144),
    "small": (4, 256, 4096, 32, 64),
    "base": (12, 768, 30522, 32, 144),
}
OURS = "ours: packed, sorted chunks, gradient caching"
FORMS = {
    "dense": {
        "sorted": "transformers, sorted chunks, gradient caching",
        "sorted_bf16": "transformers, sorted chunks, gradient caching",
        "library": "CachedMultipleNegativesRankingLoss",
        "library_bf16": "CachedMultipleNegativesRankingLoss",
        "ours": OURS,
        "ours_bf16": OURS,
    },
    "sparse": {
        "padded": "padded, all logits kept",
        "library": "SpladeLoss",
        "library_cached": "CachedSpladeLoss",
        "ours": OURS,
        f"ours{ONE_CHUNK}": "ours: packed, one chunk",
    },
    "multi": {
        "padded": "padded, all products kept",
        "library": "MultiVectorMultipleNegativesRankingLoss",
        "library_cached": "CachedMultiVectorMultipleNegativesRankingLoss",
        "ours": OURS,
        f"ours{ONE_CHUNK}": "ours: packed, one chunk",
    },
}
DEFAULTS = {"dense": ("tiny", 64, 32), "sparse": ("default", 32, 4), "multi": ("default", 32, 4)}
FLOPS = 5e-3  # weight of both regularisers of a sparse head
DIMENSIONS = 128  # of multi-vectors
ALONE = Ranks()
MASK = 4  # the word-piece that fills the queries of multi-vectors


# --- texts and networks ---------------------------------------------------------------------------


def lengths(count: int, mean: float, longest: int, generator: np.random.Generator) -> np.ndarray:
    """Draw lengths from a long-tailed distribution, truncated at `longest`."""
    drawn = np.exp(generator.normal(np.log(mean * 0.93), 0.38, count))
    return np.clip(drawn, 5, longest).astype(np.int64)


def batch(size: str, queries: int, group: int) -> Batch:
    """Draw a step of random texts."""
    _, _, vocabulary, longest_query, longest = SIZES[size]
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
    return Batch(Ragged(ids, starts), queries)


def filled(size: str, queries: int, group: int) -> Batch:
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
    return Batch(Ragged(both.values, both.starts, flags=flags), queries, pieces=both)


def pairs(size: str, count: int) -> Ragged:
    """Draw random pairs for a reranker, with the lengths of passages."""
    drawn = batch(size, 1, count).sequences.take(np.arange(1, count + 1))
    return Ragged(drawn.values, drawn.starts, np.zeros_like(drawn.values))


@contextmanager
def seeded() -> Iterator[None]:
    """Draw weights from a fixed seed, without changing the global generator."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        yield


def config_of(size: str) -> BertConfig:
    """Return the configuration of a size, without dropout."""
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


def network(size: str, head: str = "dense") -> nn.Module:
    """Make a retriever with random weights, the same in every process."""
    with seeded():
        if head == "sparse":
            return BertForMaskedLM(config_of(size))
        made = BertModel(config_of(size), add_pooling_layer=False)
    if head == "multi":
        with seeded():
            linear.start_layers(
                made, multi.layers({"match": "any", "dimensions": DIMENSIONS}), seed=1
            )
    return made


def cross_encoder(size: str) -> BertForSequenceClassification:
    """Make a reranker with random weights, the same in every process."""
    with seeded():
        return BertForSequenceClassification(config_of(size))


def padded(read: Ragged, rows: np.ndarray) -> dict[str, Tensor]:
    """Write some sequences as a padded batch for transformers, on torch's default device."""
    every = read.lengths[rows]
    mask = np.arange(every.max()) < every[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = read.take(rows).values
    return {"input_ids": tensor(ids), "attention_mask": tensor(mask.astype(np.int64))}


def columns(work: Batch) -> list[dict[str, Tensor]]:
    """Return a padded batch of the queries, and one for each rank of passages in a group."""
    read = work.sequences
    queries = work.queries
    group = len(read) // queries - 1
    ranks = [np.arange(queries + rank, len(read), group) for rank in range(group)]
    return [padded(read, rows) for rows in (np.arange(queries), *ranks)]


# --- peers ----------------------------------------------------------------------------------------


class Wrapped(nn.Module):
    """A network with the interface that sentence-transformers calls, for each head."""

    def __init__(self, model: nn.Module, head: str) -> None:
        """Wrap a network; a sparse head has sentence-transformers' own pooling."""
        super().__init__()
        self.model = model
        self.head = head
        if head == "sparse":
            from sentence_transformers.sparse_encoder.modules import SpladePooling

            self.pooling = SpladePooling("max")

    def forward(self, features: dict[str, Tensor], task: str | None = None) -> dict[str, Tensor]:
        """Compute the vectors of a padded batch; queries and passages are treated alike."""
        del task
        inputs = {name: features[name] for name in ("input_ids", "attention_mask")}
        if self.head == "sparse":
            return self.pooling({**inputs, "token_embeddings": self.model(**inputs).logits})
        states = self.model(**inputs).last_hidden_state
        if self.head == "dense":
            return {"sentence_embedding": states[:, 0]}
        vectors = functional.normalize(self.model.projection(states), dim=-1)
        return {"token_embeddings": vectors, "attention_mask": inputs["attention_mask"]}


def sorted_step(model: BertModel, work: Batch, chunk: int) -> Tensor:
    """Run a dense step with gradient caching, in padded chunks that are sorted by length."""
    read = work.sequences
    order = np.argsort(read.lengths, kind="stable")
    cuts = [order[first : first + chunk] for first in range(0, len(order), chunk)]

    def encode(rows: np.ndarray) -> Tensor:
        return model(**padded(read, rows)).last_hidden_state[:, 0]

    with torch.no_grad():
        found = torch.cat([encode(rows).float() for rows in cuts])
    vectors = torch.empty_like(found)
    vectors[np.concatenate(cuts)] = found
    vectors.requires_grad_()
    loss = losses.in_batch_loss(vectors[: work.queries] @ vectors[work.queries :].T)  # equation 10
    loss.backward()
    for rows in cuts:
        encode(rows).backward(vectors.grad[rows])
    return loss


def padded_step(model: nn.Module, work: Batch, head: str) -> Tensor:
    """Run a step of the padded batch, with all its logits or products of vectors."""
    read = work.sequences
    count = work.queries
    queries, passages = (
        Wrapped(model, head)(padded(read, rows))
        for rows in (np.arange(count), np.arange(count, len(read)))
    )
    if head == "sparse":
        asked, found = (each["sentence_embedding"] for each in (queries, passages))
        loss = losses.in_batch_loss(asked @ found.T)
        loss = loss + FLOPS * (losses.flops(asked) + losses.flops(found))
    else:
        products = torch.einsum(
            "qid,pjd->qpij", queries["token_embeddings"], passages["token_embeddings"]
        )
        absent = passages["attention_mask"][None, :, None] == 0
        maxima = products.masked_fill(absent, -torch.inf).amax(-1)
        loss = losses.in_batch_loss((maxima * queries["attention_mask"][:, None]).sum(-1))
    loss.backward()
    return loss


def library_step(model: nn.Module, work: Batch, chunk: int, head: str, *, cached: bool) -> Tensor:
    """Run a step of sentence-transformers' loss, plain or with gradient caching."""
    encoder = Wrapped(model, head).train()
    how = {"mini_batch_size": chunk} if cached else {}
    if head == "dense":
        from sentence_transformers.sentence_transformer import losses as theirs
        from sentence_transformers.util import dot_score

        kind = theirs.CachedMultipleNegativesRankingLoss
        loss = kind(nn.Sequential(encoder), 1.0, dot_score, **how)(columns(work), torch.empty(0))
    elif head == "sparse":
        from sentence_transformers.sparse_encoder import losses as theirs

        kind = theirs.CachedSpladeLoss if cached else theirs.SpladeLoss
        base = theirs.SparseMultipleNegativesRankingLoss(encoder)
        parts = kind(encoder, base, FLOPS, FLOPS, **how)(columns(work), torch.empty(0))
        loss = torch.stack(list(parts.values())).sum()
    else:
        from sentence_transformers.multi_vector_encoder import losses as theirs

        kind = theirs.MultiVectorMultipleNegativesRankingLoss
        kind = theirs.CachedMultiVectorMultipleNegativesRankingLoss if cached else kind
        loss = kind(encoder, **how)(columns(work))
    loss.backward()
    return loss


def task(
    network: nn.Module, stage: Retriever, group: Ranks = ALONE, sparsity: Sparsity | None = None
) -> RetrieverTask:
    """Make the training of a retriever without its data."""
    model = Model("retriever", network, None, {}, stage.precision)
    return RetrieverTask("ours", model, None, stage, 1, group, sparsity)


# --- the comparison -------------------------------------------------------------------------------


def step(form: str, model: nn.Module, work: Batch, given: argparse.Namespace) -> float:
    """Run one forward and backward pass; return the loss."""
    head = given.head
    if form.startswith("ours"):
        common = {
            "collection": "c",
            "chunk": chunk_of(form, given.chunk, work.sequences),
            "passage_length": SIZES[given.size][4],
            "precision": forms.precision(form),
        }
        sparsity = None
        if head == "dense":
            stage = Dense(**common)
        elif head == "multi":
            stage = Multi(**common, dimensions=DIMENSIONS)
        else:
            weights = {"query_flops": FLOPS, "passage_flops": FLOPS, "flops_warmup": 0}
            stage = Sparse(**common, **weights)
            sparsity = Sparsity(stage, "ours", 1, model.config.vocab_size)
        return task(model, stage, sparsity=sparsity).learn(work, 0)["loss"].item()
    with setup.autocast(forms.precision(form), torch.device("cpu")):
        if form.startswith("sorted"):
            return sorted_step(model, work, given.chunk).item()
        if form == "padded":
            return padded_step(model, work, head).item()
        cached = head == "dense" or form == "library_cached"
        return library_step(model, work, given.chunk, head, cached=cached).item()


def start(form: str, given: argparse.Namespace) -> Callable[[], float]:
    """Return a form's step, which returns its loss."""
    model = network(given.size, given.head)
    work = (filled if given.head == "multi" else batch)(given.size, given.queries, given.group)

    def once() -> float:
        model.zero_grad(set_to_none=False)
        return step(form, model, work, given)

    return once


def main() -> None:
    """Measure every form of a head's step, and print the table."""
    parser = forms.parser(__doc__, chunk=64)
    parser.add_argument("--head", choices=FORMS, default="dense")
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--group", type=int)
    given = parser.parse_args()
    size, queries, group = DEFAULTS[given.head]
    given.size = given.size or size
    given.queries = given.queries or queries
    given.group = given.group or group
    work = (
        f"{given.size}: {SIZES[given.size][:3]}, {given.queries} queries x {given.group} passages, "
        f"chunks of {given.chunk}"
    )
    forms.compare(start, FORMS[given.head], given, f"fine-tuning step, {given.head}", work=work)


if __name__ == "__main__":
    main()
