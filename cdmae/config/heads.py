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
    """Length at which queries are cut (word-pieces) [SimLM]."""
    passage_length: Length = 144
    """Length at which passages are cut (word-pieces) [SimLM]."""
    query_prompt: str = ""
    """Text before each query, such as "query: "; part of `query_length` [E5, BGE]."""
    passage_prompt: str = ""
    """Text before each passage, likewise [E5, BGE]."""
    in_batch: bool = True
    """The other queries' passages are also negatives [3.4]."""
    temperature: Weight = 1.0
    """Divides the retriever's scores in the losses; 0: the standard deviation of a query's scores
    before training [3.4: 1].
    """
    distillation: Literal["kl", "margin_mse", "none"] = "kl"
    """kl: divergence of the distributions over the group; margin_mse: mean squared error of the
    differences between the positive's and each negative's score; none: the teacher only selects
    negatives (`denoise`, `margin_bins`) [3.4: kl; margin_mse: TAS-B; none: RocketQA].
    """
    denoise: Share = 0.0
    """Removes false negatives from the contrastive loss: passages that the teacher prefers to the
    positive with more than this probability, the sigmoid of the difference of their scores; 0: off
    [RocketQA: 0.1].
    """
    labels: Share = 0.0
    """For a split without judgments: the least probability, the softmax of the teacher's scores of
    the mined passages divided by teacher_temperature, that labels a passage as relevant; queries
    without such a passage are left out; 0: the split has judgments [RocketQA: 0.9].
    """
    margin_bins: Natural = 0
    """Number of equally wide bins of the difference between the teacher's scores of the positive
    and of a negative; bins are drawn equally often; 0: negatives are [TAS-B: 10].
    """
    in_batch_weight: PositiveReal = 0.75
    """Weight of the distillation from the system's `in_batch_teacher` [TAS-B: 0.75]."""

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
    """The vector of a text: the state of its first token, or the mean over its tokens [SimLM]."""
    similarity: Literal["dot", "cosine"] = "dot"
    """cosine: the dot product of the vectors scaled to length 1 [3.4: dot; SimLM: cosine]."""
    passage_weight: Share = 0.0
    """Weight w of the passage-centric loss: the positive must be closer to its query than to the
    negatives; the other contrastive loss has weight 1 - w; 0: off [PAIR: 0.1].
    """

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including the pooling and the similarity."""
        return super().model() | pick(asdict(self), ("pooling", "similarity"))


@settings
class Dense(Pooled):
    """A retriever with one vector per text [3.4]."""

    head: Literal["dense"] = "dense"
    topics: Natural = 0
    """Number of topics, clusters of the queries' vectors by the initial weights; the queries of a
    batch share a topic; 0: batches are random [TAS-B].
    """


@settings
class Multi(Retriever):
    """A retriever with a vector per word-piece [ColBERT, COIL]."""

    head: Literal["multi"] = "multi"
    dimensions: Positive = 128
    """Width of a word-piece's vector [ColBERT: 128; COIL: 32]."""
    cls_dimensions: Positive = 768
    """With match equal: width of [CLS]'s vector, up to the encoder's [COIL: 768]."""
    match: Literal["any", "equal"] = "any"
    """any: vectors of length 1 are compared with all others [ColBERT]; equal: vectors of any length
    are compared within the same word-piece, products below 0 count as 0, and the product of the
    [CLS] vectors is added [COIL].
    """
    expansion: Literal["none", "unattended", "attended"] = "unattended"
    """With match any: whether [MASK] fills queries up to `query_length`, and whether other
    word-pieces attend to it [ColBERT: unattended].
    """
    skip_punctuation: bool = True
    """With match any: punctuation marks of passages have no vectors [ColBERT]."""

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
    """Weight of the FLOPS regulariser of queries, the sum over word-pieces of the squared mean
    weight in the global batch [SPLADE: 5e-3].
    """
    passage_flops: Weight = 5e-3
    """Weight of the FLOPS regulariser of passages [SPLADE: 5e-3]."""
    flops_warmup: Weight = 0.33
    """Steps over which both weights grow quadratically from 0; up to 1: a share of all steps
    [SPLADE: a third].
    """

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
    """The word-pieces with a weight: all, by the language-model head [SPLADE v2]; own: those of the
    text, by a new linear layer with ReLU [uniCOIL].
    """
    target: Literal["ranking", "recall"] = "ranking"
    """recall, with pieces own: a word's weight, the score of its first word-piece, is regressed on
    the share of the passage's training queries that contain the word; a query's weights are counts
    [DeepCT, section 3.1].
    """

    query_weights: Literal["network", "idf"] = "network"
    """network: queries are weighted like passages; idf, with pieces all: by a table of the IDF of
    each word-piece over the passages of `collection`, so that no network runs for a query and
    `query_flops` has no effect [idf: Geng et al. 2024].
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
    """Divides the dense head's scores; the system's score is the sparse head's plus temperature /
    dense_temperature times the dense head's.
    """

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model: also its head, and the dense head's weight."""
        weight = self.temperature / self.dense_temperature
        return super().model() | {"head": self.head, "dense_weight": weight}


AnyRetriever = Annotated[Dense | Multi | Sparse | Unified, Field(discriminator="head")]
