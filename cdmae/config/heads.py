"""The stages of retrievers, with a class for each head.

A head turns the states of a text into the representation that is compared. A class here has the
head's settings; the file of the same name in `cdmae.models.heads` computes its vectors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cdmae.config.recipe import Stage
from cdmae.fields import (
    Length,
    Natural,
    Positive,
    PositiveReal,
    Share,
    Weight,
    asdict,
    pick,
    settings,
    unfit,
)

FRAME = 2  # special tokens around a text


@settings
class Retriever(Stage):
    """A recipe for training retrievers: the settings that all heads share."""

    lengths = ("query_length", "passage_length")
    # settings of heads with one vector per text
    passage_weight = 0.0
    query_weights = "network"  # a setting of the sparse head

    kind: Literal["retriever"] = "retriever"
    query_length: Length = 32
    """Maximum length of a query (word-pieces) [SimLM]."""
    passage_length: Length = 144
    """Maximum length of a passage (word-pieces) [SimLM]."""
    query_prompt: str = ""
    """Text before each query, such as "query: " [E5, BGE]."""
    passage_prompt: str = ""
    """Text before each passage [E5, BGE]."""
    in_batch: bool = True
    """Whether the other queries' passages are negatives, too [3.4]."""
    temperature: Weight = 1.0
    """Divides the scores in the losses; 0: their initial standard deviation [3.4: 1]."""
    distillation: Literal["kl", "margin_mse", "none"] = "kl"
    """kl: divergence over the group [3.4]; margin_mse: errors of the differences from the
    positive's score [TAS-B]; none: the teacher only selects negatives [RocketQA].
    """
    denoise: Share = 0.0
    """Leaves out negatives that the teacher prefers to the positive with more than this
    probability; 0: off [RocketQA: 0.1].
    """
    labels: Share = 0.0
    """For a split without judgments: the least share of the teacher's softmax that makes a mined
    passage relevant; 0: off [RocketQA: 0.9].
    """
    margin_bins: Natural = 0
    """Negatives are drawn evenly from this many bins of their margin by the teacher; 0: off [TAS-B:
    10].
    """
    in_batch_weight: PositiveReal = 0.75
    """Weight of the distillation from `in_batch_teacher` [TAS-B]."""

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including the prompts."""
        return super().model() | pick(asdict(self), ("query_prompt", "passage_prompt"))

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
    """The vector of a text: the first token's state, or the mean of all [SimLM]."""
    similarity: Literal["dot", "cosine"] = "dot"
    """Dot product of the vectors [3.4], or of vectors of length 1 [SimLM]."""
    passage_weight: Share = 0.0
    """Weight of the passage-centric loss; the contrastive loss gets the rest [PAIR: 0.1]."""

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including the pooling and the similarity."""
        return super().model() | pick(asdict(self), ("pooling", "similarity"))


@settings
class Dense(Pooled):
    """A retriever with one vector per text [3.4]."""

    head: Literal["dense"] = "dense"
    topics: Natural = 0
    """Number of clusters of queries, by the initial weights, from which batches are drawn; 0:
    random batches [TAS-B].
    """


@settings
class Multi(Retriever):
    """A retriever with a vector per word-piece [ColBERT, COIL]."""

    head: Literal["multi"] = "multi"
    dimensions: Positive = 128
    """Width of a word-piece's vector [ColBERT: 128; COIL: 32]."""
    cls_dimensions: Positive = 768
    """With match equal: width of [CLS]'s vector [COIL]."""
    match: Literal["any", "equal"] = "any"
    """any: vectors of length 1, each compared with all others [ColBERT]; equal: vectors of the same
    word-piece, and of [CLS] [COIL].
    """
    expansion: Literal["none", "unattended", "attended"] = "unattended"
    """With match any: whether [MASK] fills queries up to `query_length`, and is attended to
    [ColBERT].
    """
    skip_punctuation: bool = True
    """With match any: whether passages have no vectors of punctuation [ColBERT]."""

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including its head."""
        keys = ("head", "dimensions", "match", "expansion", "skip_punctuation")
        if self.match == "equal":
            keys += ("cls_dimensions",)
        return super().model() | pick(asdict(self), keys)


@settings
class Regularised(Retriever):
    """The settings of the regulariser that sets most weights of a sparse head to 0."""

    query_flops: Weight = 5e-3
    """Weight of the FLOPS regulariser of queries [SPLADE]."""
    passage_flops: Weight = 5e-3
    """Weight of the FLOPS regulariser of passages [SPLADE]."""
    flops_warmup: Weight = 0.33
    """Steps in which both weights grow from 0; up to 1: a share of all steps [SPLADE]."""

    def __post_init__(self) -> None:
        """Refuse a temperature from the initial scores."""
        if not self.temperature:
            words = ", the spread of the initial scores, but the initial vectors of head "
            raise unfit(self, "temperature", f"{words}{self.head} are not sparse; expected above 0")


@settings
class Sparse(Regularised):
    """A retriever with a weight per word-piece of the vocabulary; most are 0 [SPLADE v2]."""

    head: Literal["sparse"] = "sparse"
    pieces: Literal["all", "own"] = "all"
    """The word-pieces with a weight: all, by the language-model head [SPLADE v2], or the text's
    own, by a new layer [uniCOIL].
    """
    target: Literal["ranking", "recall"] = "ranking"
    """recall, with pieces own: the weight of a word is the share of the passage's training queries
    that contain it [DeepCT].
    """

    query_weights: Literal["network", "idf", "learned"] = "network"
    """Weights of a query: by the network, or without one, by a table of IDF, or of weights that are
    learnt from IDF on [Geng et al. 2024].
    """

    def __post_init__(self) -> None:
        """Refuse a regression without a layer of its own."""
        super().__post_init__()
        if self.target == "recall" and self.pieces == "all":
            raise unfit(self, "target", " and pieces is all; expected recall with pieces own")

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including its head."""
        own = pick(asdict(self), ("pieces", "target")) if self.pieces == "own" else {}
        return super().model() | {"head": self.head, "query_weights": self.query_weights} | own


@settings
class Unified(Pooled, Regularised):
    """A retriever with a dense and a sparse head, trained by the sum of their losses [UnifieR].

    `temperature` divides the sparse head's scores. UnifieR's loss on the agreement of both heads
    and its gate of the query's words are left out.
    """

    head: Literal["unified"] = "unified"
    dense_temperature: PositiveReal = 1.0
    """Divides the dense head's scores; temperature / dense_temperature is their weight in a search.
    """

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model: also its head, and the dense head's weight."""
        weight = self.temperature / self.dense_temperature
        return super().model() | {"head": self.head, "dense_weight": weight}


AnyRetriever = Annotated[Dense | Multi | Sparse | Unified, Field(discriminator="head")]
