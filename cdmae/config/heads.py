"""The stages of retrievers, with a class for each head.

A head turns the states of a text into the representation that is compared. A class here has the
head's settings; the file of the same name in `cdmae.models.heads` computes its vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import Field

from cdmae.config.recipe import OF_A_TEACHER, Stage
from cdmae.errors import InputError
from cdmae.fields import (
    Positive,
    Real,
    Share,
    Weight,
    Whole,
    asdict,
    pick,
    settings,
)

if TYPE_CHECKING:
    pass

FRAME = 2  # special tokens around a text


@settings
class Retriever(Stage):
    """A recipe for training retrievers: the settings that all heads share."""

    lengths = ("query_length", "passage_length")
    # settings of heads with one vector per text
    prefixes = ()
    passage_weight = 0.0
    query_weights = "network"  # a setting of the sparse head

    kind: Literal["retriever"] = "retriever"
    """An encoder whose vectors are searched [3.4]."""
    query_length: Annotated[Whole, Ge(8)] = 32
    """Length at which queries are cut (word-pieces) [SimLM]."""
    passage_length: Annotated[Whole, Ge(8)] = 144
    """Length at which passages are cut (word-pieces) [SimLM]."""
    query_prompt: str = ""
    """Text before each query in training and search, such as "query: "; counted in `query_length`
    [E5, BGE].
    """
    passage_prompt: str = ""
    """Text before each passage, such as "passage: "; counted in `passage_length` [E5, BGE]."""
    in_batch: bool = True
    """The other queries' passages are also negatives [3.4]."""
    temperature: Weight = 1.0
    """Divides the retriever's scores in the losses, but not the teacher's; 0: use the standard
    deviation of a query's scores in the first batch, before training [3.4: 1].
    """
    distillation: Literal["kl", "margin_mse", "none"] = "kl"
    """How a retriever learns from its teacher. kl: divergence of the distributions over the group;
    margin_mse: mean squared error of the differences between the scores of the positive and of each
    negative; none: from the contrastive loss alone, for a teacher that only selects negatives
    (`denoise`, `margin_bins`) [3.4: kl; margin_mse: Hofstätter et al. 2020, TAS-B; none: RocketQA].
    """
    denoise: Share = 0.0
    """Against false negatives: a negative is removed from the contrastive loss if the teacher
    prefers it to the positive with more than this probability, the sigmoid of the difference of
    their scores; 0 is off [RocketQA, NAACL 2021: 0.1, the probability that it is relevant].
    """
    labels: Share = 0.0
    """For a split without judgments: a passage among the best `depth` mined ones is labelled as
    relevant if the teacher gives it at least this probability among them, the softmax of its scores
    divided by teacher_temperature; queries without such a passage are left out; 0: the split has
    judgments [RocketQA, NAACL 2021: 0.9, the probability that it is relevant].
    """
    margin_bins: Annotated[Whole, Ge(0), Le(1000)] = 0
    """Number of equally wide bins into which a query's negatives are divided by the difference
    between the teacher's scores of the positive and of the negative. Every bin with a negative is
    drawn from equally often; 0: all negatives are [TAS-B, SIGIR 2021: 10].
    """
    in_batch_weight: Annotated[Real, Gt(0), Le(1e6)] = 0.75
    """Weight of the distillation from the system's `in_batch_teacher`, if it has one: the mean
    squared error of the differences between the scores of the positive and of every other passage
    of the batch [TAS-B, SIGIR 2021: 0.75].
    """

    def __post_init__(self) -> None:
        """Refuse settings that need `in_batch`, and random passages, which have no labels."""
        if self.denoise and not self.in_batch:
            raise InputError(
                f"denoise is {self.denoise}, but in_batch is false; expected 0, or in_batch true"
            )
        if self.labels and self.random_negatives:
            raise InputError(
                f"labels is {self.labels} and random_negatives is {self.random_negatives}; "
                "expected random_negatives 0, because the teacher scores only mined passages"
            )

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
    """The vector of a text: the state of its first token, or the mean over all its tokens [SimLM;
    mean: Sentence-BERT].
    """
    similarity: Literal["dot", "cosine"] = "dot"
    """dot: the dot product of the vectors; cosine: of the vectors scaled to length 1 [3.4; cosine:
    SimLM].
    """
    prefixes: tuple[Positive, ...] = ()
    """Matryoshka: widths of prefixes of the vector, such as [32, 64]; their losses are added to the
    whole vector's loss, and vectors can then be cut there. With similarity cosine,
    prefixes are scaled to length 1; dot products of prefixes are multiplied by sqrt(width of the
    vector / width), to spread as widely as whole vectors' [Kusupati et al. 2022;
    sentence-transformers: MatryoshkaLoss].
    """

    passage_weight: Annotated[Real, Ge(0), Le(0.99)] = 0.0
    """Weight w of the passage-centric loss, in which the positive passage must be closer to its
    query than to the negatives; the other contrastive loss has weight 1 - w; 0 is off [PAIR, ACL
    2021: 0.1].
    """

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including the pooling and the similarity."""
        return super().model() | pick(asdict(self), ("pooling", "similarity"))


@settings
class Dense(Pooled):
    """A retriever with one vector per text."""

    head: Literal["dense"] = "dense"
    """One vector per text."""
    topics: Annotated[Whole, Ge(0), Le(100_000)] = 0
    """Number of topics of the training queries; the queries of a batch share a topic, where it has
    enough of them. Topics are clusters of the vectors that the initial weights give to the queries;
    0: batches are random [TAS-B, SIGIR 2021].
    """


@settings
class Multi(Retriever):
    """A retriever with one vector per word-piece."""

    head: Literal["multi"] = "multi"
    """A vector per word-piece: each query vector is matched to a passage vector [ColBERT, SIGIR
    2020].
    """
    dimensions: Annotated[Whole, Ge(1), Le(4096)] = 128
    """Width of a word-piece's vector; COIL: 32 (numbers) [ColBERT: 128]."""
    cls_dimensions: Annotated[Whole, Ge(1), Le(4096)] = 768
    """With match equal: width of [CLS]'s vector, which has a projection of its own; the encoder's
    width is as much as it can use (numbers) [COIL: 768, the width of its encoder].
    """
    match: Literal["any", "equal"] = "any"
    """any: vectors of length 1 are compared with all others (ColBERT); equal: vectors of any length
    are compared only within the same word-piece, a product below 0 counts as 0, and the product of
    the [CLS] vectors is added (COIL) [ColBERT; equal: COIL, NAACL 2021].
    """
    expansion: Literal["none", "unattended", "attended"] = "unattended"
    """Whether [MASK] fills queries up to `query_length`, and whether a query's other word-pieces
    attend to it; no effect with match equal, which has none [ColBERT: unattended].
    """
    skip_punctuation: bool = True
    """Punctuation marks of passages have no vectors; no effect with match equal [ColBERT:
    mask_punctuation].
    """

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
    weight in the global batch; larger: fewer entries [SPLADE, SIGIR 2023: 5e-3].
    """
    passage_flops: Weight = 5e-3
    """Weight of the FLOPS regulariser of passages [SPLADE, SIGIR 2023: 5e-3]."""
    flops_warmup: Annotated[Real, Ge(0), Le(1e9)] = 0.33
    """Steps over which both weights grow quadratically from 0; a value up to 1 is a share of all
    steps. Without this warm-up, all entries of the vectors may become 0 [SPLADE: a third].
    """

    def __post_init__(self) -> None:
        """Refuse a temperature from the initial scores."""
        super().__post_init__()
        if not self.temperature:
            raise InputError(
                "temperature is 0, which means the spread of the initial scores, but before "
                f"training the vectors of head {self.head} are not sparse; expected above 0"
            )


@settings
class Sparse(Regularised):
    """A retriever with one weight per word-piece of the vocabulary; most weights are 0."""

    # settings of the losses of `target: ranking`
    ranked = (
        "query_flops", "passage_flops", "flops_warmup", "temperature", "in_batch",
        "in_batch_weight", *OF_A_TEACHER,
    )  # fmt: skip

    head: Literal["sparse"] = "sparse"
    """A weight per word-piece; most are 0 [SPLADE v2]."""
    pieces: Literal["all", "own"] = "all"
    """word-pieces that can have a weight: all, by the language-model head (SPLADE); own: those of
    the text, by a new linear layer with ReLU; the largest weight of a repeated word-piece counts
    (uniCOIL) [SPLADE v2; own: uniCOIL, as in Tevatron].
    """
    target: Literal["ranking", "recall"] = "ranking"
    """ranking: trained by the losses of retrievers; recall, with pieces own: a word's weight, the
    score of its first word-piece, is regressed on the share of the passage's training queries that
    contain the word; a query's weights are counts (DeepCT) [SPLADE v2; recall: DeepCT, section
    3.1].
    """

    query_weights: Literal["network", "idf"] = "network"
    """Where the weights of queries come from. network: as those of passages; idf, with pieces all:
    a table of the IDF of each word-piece over the passages of `collection`, so that no network runs
    for a query; `query_flops` has no effect [SPLADE v2; idf: Geng et al. 2024, arXiv 2411.04403].
    """

    def __post_init__(self) -> None:
        """Refuse a regression without a layer of its own, and a table beside such a layer."""
        super().__post_init__()
        if self.query_weights == "idf" and self.pieces == "own":
            raise InputError(
                "query_weights is idf and pieces is own; expected query_weights idf with pieces all"
            )
        if self.target == "recall" and self.pieces == "all":
            raise InputError(
                "target is recall and pieces is all; expected target recall with pieces own"
            )

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including its head."""
        own = pick(asdict(self), ("pieces", "target")) if self.pieces == "own" else {}
        return super().model() | {"head": self.head, "query_weights": self.query_weights} | own

    def values(self, **teachers: bool) -> dict[str, Any]:
        """Return the settings that affect a training; `target: recall` ignores all other losses."""
        found = super().values(**teachers)
        unread = self.ranked if self.target == "recall" else ()
        if self.query_weights == "idf":
            unread += ("query_flops",)
        return {key: value for key, value in found.items() if key not in unread}


@settings
class Unified(Pooled, Regularised):
    """A retriever with a dense and a sparse head on one encoder.

    Both are trained together, and searched by the sum of their scores or, with a system of kind
    `head`, alone. UnifieR's further parts are not included: the loss on the agreement of both
    heads, and the gate of the query's words.
    """

    head: Literal["unified"] = "unified"
    """A dense and a sparse head on one encoder, trained together: the loss is the sum of both
    losses; `temperature` divides the scores of the sparse head [UnifieR, KDD 2023].
    """
    dense_temperature: Annotated[Real, Ge(1e-3), Le(1e6)] = 1.0
    """Divides the scores of the dense head in its losses; the system's score is the sparse head's
    plus temperature / dense_temperature times the dense head's.
    """

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model: also its head, and the dense head's weight."""
        weight = self.temperature / self.dense_temperature
        return super().model() | {"head": self.head, "dense_weight": weight}


AnyRetriever = Annotated[Dense | Multi | Sparse | Unified, Field(discriminator="head")]
