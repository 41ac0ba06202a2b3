"""Stages: recipes of supervised training, with a class for each head of retrievers.

A head turns the states of a text into the representation that is compared. A class here has the
head's settings; the file of the same name in `cdmae.models.heads` computes its vectors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge
from pydantic import Field

from cdmae.fields import (
    Entry,
    Length,
    Name,
    Natural,
    Of,
    Positive,
    PositiveReal,
    Precision,
    Rate,
    Seed,
    Share,
    Weight,
    Whole,
    asdict,
    pick,
    settings,
    unfit,
)

# settings without an effect on a system that has no teacher
OF_A_TEACHER = (
    "distillation",
    "alpha",
    "teacher_temperature",
    "denoise",
    "labels",
    "margin_bins",
)


@settings
class Stage(Entry):
    """A recipe of supervised training; systems set the encoder, the negatives and the teacher."""

    lengths = ()  # the settings at which texts are cut
    topics = 0  # a setting of the dense head
    labels = 0.0  # a setting of retrievers
    target = "ranking"  # a setting of the sparse head

    collection: Annotated[Name, Of("collections")]
    """Collection of the training queries."""
    split: str = "train"
    """Its split."""
    train_queries: Natural = 0
    """Training queries; 0: all."""
    depth: Positive = 200
    """Passages that give negatives [4.1; stage 1: 1000]."""
    queries: Positive = 64
    """Queries per step, on all devices [A; stage 3: 32]."""
    group: Annotated[Whole, Ge(2)] = 32
    """Passages per query, one of them relevant [A; stage 3: 64]."""
    epochs: PositiveReal = 3
    """Passes over the queries [A]."""
    learning_rate: Rate = 2e-5
    """Peak of the linear schedule [A]."""
    warmup_steps: Weight = 1000
    """Warm-up steps; below 1: a share of all [SimLM]."""
    weight_decay: Weight = 0.0
    """Weight decay of AdamW [SimLM]."""
    max_grad_norm: PositiveReal = 1.0
    """Maximum norm of gradients [SimLM]."""
    random_negatives: Natural = 10
    """Random negatives per query, besides mined ones [SimLM]."""
    chunk: Positive = 64
    """Passages per chunk of gradient caching; affects memory and rounding."""
    precision: Precision = "auto"
    alpha: Weight = 0.2
    """Weight of the contrastive loss next to a teacher's [4.1]."""
    teacher_temperature: PositiveReal = 1.0
    """Divides the teacher's scores; below 1 for cosines [4.1]."""
    seed: Seed = -1

    def drawn(self) -> dict[str, Any]:
        """Return the settings that affect which candidates are drawn and scored by a teacher."""
        keys = ("split", "train_queries", "depth", "group", "random_negatives", "epochs", "seed")
        return pick(asdict(self), keys)

    def model(self) -> dict[str, Any]:
        """Return the settings from which a model takes how it reads and compares texts."""
        return asdict(self, ("kind", "seed"))

    def values(self, *, is_taught: bool = True) -> dict[str, Any]:
        """Return the settings that affect a training, with or without a teacher."""
        return asdict(self, () if is_taught else OF_A_TEACHER)


@settings
class Retriever(Stage):
    """The vectors of an encoder that a stage trains."""

    lengths = ("query_length", "passage_length")
    # settings of heads with one vector per text
    passage_weight = 0.0
    query_weights = "network"  # a setting of the sparse head

    kind: Literal["retriever"] = "retriever"
    query_length: Length = 32
    """Longest query (word-pieces) [SimLM]."""
    passage_length: Length = 144
    """Longest passage (word-pieces) [SimLM]."""
    query_prompt: str = ""
    """Text before each query, such as "query: " [E5, BGE]."""
    passage_prompt: str = ""
    """Text before each passage [E5, BGE]."""
    in_batch: bool = True
    """Use other queries' passages as negatives [3.4]."""
    temperature: Weight = 1.0
    """Divides the scores; 0: by their initial standard deviation [3.4]."""
    distillation: Literal["kl", "margin_mse", "none"] = "kl"
    """kl: divergence over the group [3.4]; margin_mse: errors of margins to the positive [TAS-B];
    none: the teacher only selects negatives [RocketQA].
    """
    denoise: Share = 0.0
    """Drops negatives that the teacher prefers with more probability; 0: off [RocketQA: 0.1]."""
    labels: Share = 0.0
    """Without judgments: mined passages with this share of the teacher's softmax are relevant; 0:
    off [RocketQA: 0.9].
    """
    margin_bins: Natural = 0
    """Bins of the teacher's margins to draw negatives from evenly; 0: off [TAS-B: 10]."""
    in_batch_weight: PositiveReal = 0.75
    """Weight of the distillation from `in_batch_teacher` [TAS-B]."""

    def __post_init__(self) -> None:
        """Refuse to drop negatives that are not compared."""
        if self.denoise and not self.in_batch:
            raise unfit(self, "denoise", " and in_batch is false; expected in_batch")

    def drawn(self) -> dict[str, Any]:
        """Add that a teacher must score all candidates, because its scores decide the draws.

        If it labels the queries, these are the best `depth` mined passages of every query.
        """
        drawn = super().drawn()
        if self.labels:
            drawn |= {"labelled": True}
        return drawn | ({"whole_pool": True} if self.margin_bins else {})


@settings
class Pooled(Retriever):
    """The settings of a dense head, or of the dense part of a unified head."""

    pooling: Literal["cls", "mean"] = "cls"
    """As in `encoders` [SimLM]."""
    similarity: Literal["dot", "cosine"] = "dot"
    """Dot product of vectors [3.4], or of vectors of length 1 [SimLM]."""
    passage_weight: Share = 0.0
    """Weight of the passage-centric loss; the contrastive loss has the rest [PAIR: 0.1]."""


@settings
class Dense(Pooled):
    """One vector per text [3.4]."""

    head: Literal["dense"] = "dense"
    topics: Natural = 0
    """Clusters of queries to draw batches from; 0: random batches [TAS-B]."""


@settings
class Multi(Retriever):
    """A vector per word-piece [ColBERT, COIL]."""

    head: Literal["multi"] = "multi"
    dimensions: Positive = 128
    """Width of a word-piece's vector [ColBERT: 128; COIL: 32]."""
    cls_dimensions: Positive = 768
    """With match equal: width of [CLS] [COIL]."""
    match: Literal["any", "equal"] = "any"
    """any: each vector meets all others [ColBERT]; equal: only those of its word-piece [COIL]."""
    expansion: Literal["none", "unattended", "attended"] = "unattended"
    """With match any: whether [MASK] fills queries, and is attended to [ColBERT]."""
    skip_punctuation: bool = True
    """With match any: no vectors of punctuation in passages [ColBERT]."""


@settings
class Regularised(Retriever):
    """The settings of the regulariser that sets most weights of a sparse head to 0."""

    query_flops: Weight = 5e-3
    """Weight of queries' FLOPS regulariser [SPLADE]."""
    passage_flops: Weight = 5e-3
    """Weight of passages' FLOPS regulariser [SPLADE]."""
    flops_warmup: Weight = 0.33
    """Steps in which both weights grow from 0; up to 1: a share of all [SPLADE]."""

    def __post_init__(self) -> None:
        """Refuse a temperature from the initial scores."""
        super().__post_init__()
        if not self.temperature:
            words = ", the spread of the initial scores, but the initial vectors of head "
            raise unfit(self, "temperature", f"{words}{self.head} are not sparse; expected above 0")


@settings
class Sparse(Regularised):
    """A weight per word-piece of the vocabulary [SPLADE v2]."""

    head: Literal["sparse"] = "sparse"
    pieces: Literal["all", "own"] = "all"
    """Word-pieces with a weight: all, or the text's own, by a new layer [SPLADE v2, uniCOIL]."""
    target: Literal["ranking", "recall"] = "ranking"
    """recall (pieces own): weights are shares of the passage's queries with the word [DeepCT]."""

    query_weights: Literal["network", "idf", "learned"] = "network"
    """Weights of queries: by the network, a table of IDF, or a table learnt from it [Geng et al.
    2024].
    """

    def __post_init__(self) -> None:
        """Refuse a regression without a layer of its own, and a table with such a layer."""
        super().__post_init__()
        if self.pieces == "own" and self.query_weights != "network":
            raise unfit(self, "query_weights", " and pieces is own; expected network")
        if self.target == "recall" and self.pieces == "all":
            raise unfit(self, "target", " and pieces is all; expected recall with pieces own")


@settings
class Unified(Pooled, Regularised):
    """A dense and a sparse head [UnifieR].

    It is trained by the sum of their losses. `temperature` divides the sparse head's scores.
    UnifieR's loss on the agreement of both heads and its gate of the query's words are left out.
    """

    head: Literal["unified"] = "unified"
    dense_temperature: PositiveReal = 1.0
    """Divides the dense head's scores; its weight is temperature / dense_temperature."""

    def model(self) -> dict[str, Any]:
        """Add the dense head's weight."""
        return super().model() | {"dense_weight": self.temperature / self.dense_temperature}


@settings
class Reranker(Stage):
    """A cross-encoder of query and passage [3.4]."""

    lengths = ("max_length",)

    kind: Literal["reranker"] = "reranker"
    max_length: Length = 192
    """Longest query and passage together (word-pieces) [SimLM]."""
    forward_factor: Positive = 4
    """Only the best group / forward_factor passages have gradients [SimLM]."""
    rdrop: Weight = 1.0
    """Weight of R-Drop [SimLM]."""

    def __post_init__(self) -> None:
        """Refuse a group that the factor does not divide."""
        if self.group % self.forward_factor or self.group // self.forward_factor < 2:
            words = f"; expected a divisor of group, {self.group}, with a quotient of at least 2"
            raise unfit(self, "forward_factor", words)


AnyRetriever = Annotated[Dense | Multi | Sparse | Unified, Field(discriminator="head")]
AnyStage = Annotated[AnyRetriever | Reranker, Field(discriminator="kind")]
