"""Stages: recipes of supervised training, with a class for each kind of model or retriever head.

A head turns the states of a text into the representation that is compared. A class here has the
head's settings; the file of the same name in `cdmae.models.heads` computes its vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cdmae.config import checks
from cdmae.errors import InputError
from cdmae.fields import Name, asdict, pick, setting, settings, show

if TYPE_CHECKING:
    from cdmae.config.encoders import Start


FRAME = 2  # special tokens around a text


@settings
class Stage:
    """A recipe of supervised training; systems set the encoder, the negatives and the teacher."""

    lengths = ()  # the settings at which texts are cut

    collection: Name = setting(
        meaning="the collection whose queries, judgments and passages are trained on",
        names="collections",
    )
    split: str = setting("train", meaning="the split whose queries are trained on")
    depth: int = setting(
        200,
        unit="passages",
        meaning="negatives come from the best passages of the run, up to this depth",
        source="4.1: K1 1000, K2 and K3 200",
        low=1,
        high=100_000,
    )
    queries: int = setting(
        64, meaning="queries per step, on all devices together; 32 in stage 3", source="A", low=1
    )
    group: int = setting(
        32,
        unit="passages",
        meaning="group size per query, including one positive; 64 in stage 3",
        source="A",
        low=2,
        high=100_000,
    )
    epochs: float = setting(3, meaning="passes over the queries", source="A", above=0, high=10_000)
    learning_rate: float = setting(
        2e-5, meaning="peak of the linear schedule", source="A", above=0, high=1
    )
    warmup_steps: float = setting(
        1000,
        meaning="steps of the linear warm-up; a value below 1 is a share of all steps",
        source="SimLM",
        low=0,
    )
    weight_decay: float = setting(
        0.0, meaning="weight decay of AdamW", source="SimLM", low=0, high=10
    )
    max_grad_norm: float = setting(
        1.0, meaning="norm to which gradients are clipped", source="SimLM", above=0, high=1e9
    )
    random_negatives: int = setting(
        10,
        unit="passages",
        meaning="random negatives in addition to the mined ones, per query",
        source="SimLM",
        low=0,
        high=100_000,
    )
    margin: float = setting(
        0.0,
        meaning="against false negatives: a mined passage is a negative only if its mining score "
        "is at most 1 - margin times the best positive's; 0 is off",
        source="NV-Retriever, TopK-PercPos: 0.05",
        low=0,
        high=0.99,
    )
    chunk: int = setting(
        64,
        unit="passages",
        meaning="passages that are computed at a time (gradient caching); changes the memory, and "
        "the results only by rounding",
        low=1,
    )
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "auto",
        meaning="auto: bf16 on GPUs and CPUs (AVX512-BF16) that support it, fp32 on others",
    )
    seed: int = setting(
        -1,
        meaning="seed of this entry, which is then trained once, even with several `seeds`; -1: "
        "the config's",
        low=-1,
    )

    def __post_init__(self) -> None:
        """Refuse a fractional number of steps, and a group larger than the number of candidates."""
        if self.warmup_steps >= 1 and self.warmup_steps % 1:
            raise InputError(
                f"warmup_steps is {self.warmup_steps}; allowed: a share below 1, or whole steps"
            )
        most = 1 + self.depth + self.random_negatives
        if self.group > most:
            raise InputError(
                f"group is {self.group}; allowed: up to {most}, the sum of 1 positive, depth "
                f"{self.depth} and random_negatives {self.random_negatives}"
            )

    def drawn(self) -> dict[str, Any]:
        """Return the settings that affect which candidates are drawn and scored by a teacher."""
        return pick(
            asdict(self),
            ("split", "depth", "group", "random_negatives", "epochs", "seed", "margin"),
        )

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model: how texts are read and compared."""
        return pick(asdict(self), (*self.lengths, "precision"))

    def check_lengths(self, start: Start, owner: str) -> None:
        """Refuse lengths that exceed the maximum input of ``starts.NAME``, if it is known.

        start: the entry; owner: its name in messages.
        """
        lengths = {key: getattr(self, key) for key in self.lengths}
        checks.check_lengths(lengths, start.known_positions(), start.positions_of(owner))

    def values(self, *, teacher: bool = True) -> dict[str, Any]:
        """Return the settings that affect a training, with or without a teacher."""
        return asdict(self)


@settings
class Retriever(Stage):
    """The training of a retriever, whatever its head."""

    lengths = ("query_length", "passage_length")

    kind: Literal["retriever"] = setting(
        "retriever", meaning="an encoder whose vectors are searched", source="3.4"
    )
    query_length: int = setting(
        32, unit="word-pieces", meaning="length at which queries are cut", source="SimLM", low=8
    )
    passage_length: int = setting(
        144, unit="word-pieces", meaning="length at which passages are cut", source="SimLM", low=8
    )
    query_prompt: str = setting(
        "",
        meaning='text before each query in training and search, such as "query: "; counted in '
        "`query_length`",
        source="E5, BGE",
    )
    passage_prompt: str = setting(
        "",
        meaning='text before each passage, such as "passage: "; counted in `passage_length`',
        source="E5, BGE",
    )
    in_batch: bool = setting(
        True, meaning="passages of the other queries are negatives too", source="3.4"
    )
    symmetric: bool = setting(
        False,
        meaning="the contrastive loss is the mean of two: queries find their positives, and "
        "positives their queries among the batch's queries",
        source="sentence-transformers: directions of MultipleNegativesRankingLoss",
    )
    temperature: float = setting(
        1.0,
        meaning="divides the retriever's scores in the losses, but not the teacher's; 0: use the "
        "standard deviation of a query's scores in the first batch, before training",
        source="3.4: 1",
        low=0,
        high=1e6,
    )
    alpha: float = setting(
        0.2,
        meaning="weight of the contrastive loss in training with a teacher",
        source="4.1",
        low=0,
        high=1e6,
    )

    def __post_init__(self) -> None:
        """Refuse unusable prompts, tiny temperatures, and `symmetric` without `in_batch`."""
        super().__post_init__()
        for text in ("query", "passage"):
            length = getattr(self, f"{text}_length")
            prompt = getattr(self, f"{text}_prompt")
            if prompt and not prompt.strip():
                raise InputError(
                    f"{text}_prompt is {show(prompt)}, which has no word; allowed: words, or an "
                    'empty text ("") for no prompt'
                )
            if prompt[-1:].isalnum():
                raise InputError(
                    f"{text}_prompt is {show(prompt)}, whose last word would run into the text; "
                    "allowed: a space, a line break or a punctuation mark at its end"
                )
            words = len(prompt.split())
            if words + FRAME >= length:  # a word has at least one word-piece
                raise InputError(
                    f"{text}_prompt has {words} words, but {text}_length is {length}; allowed: a "
                    "prompt that leaves room for a text and two special tokens"
                )
        if self.symmetric and not self.in_batch:
            raise InputError(
                "symmetric is true, but in_batch is false; allowed: symmetric only with in_batch"
            )
        if 0 < self.temperature < 1e-3:
            raise InputError(f"temperature is {self.temperature}; allowed: 0, or from 0.001")

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including the prompts."""
        return super().model() | pick(asdict(self), ("query_prompt", "passage_prompt"))

    def values(self, *, teacher: bool = True) -> dict[str, Any]:
        """Return the settings that affect a training; `alpha` is included only with a teacher."""
        return asdict(self, () if teacher else ("alpha",))


@settings
class Dense(Retriever):
    """A retriever with one vector per text."""

    head: Literal["dense"] = setting("dense", meaning="one vector per text")
    pooling: Literal["cls", "mean"] = setting(
        "cls",
        meaning="the vector of a text: the state of its first token, or the mean over all its "
        "tokens",
        source="SimLM; mean: Sentence-BERT",
    )
    similarity: Literal["dot", "cosine"] = setting(
        "dot",
        meaning="dot: the dot product of the vectors; cosine: of the vectors scaled to length 1",
        source="3.4; cosine: SimLM",
    )

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including the pooling and the similarity."""
        return super().model() | pick(asdict(self), ("pooling", "similarity"))


@settings
class Multi(Retriever):
    """A retriever with one vector per word-piece."""

    head: Literal["multi"] = setting(
        "multi",
        meaning="a vector per word-piece: each of a query's vectors meets the best of a passage's",
        source="ColBERT, SIGIR 2020",
    )
    dimensions: int = setting(
        128,
        unit="numbers",
        meaning="width of a word-piece's vector; COIL: 32",
        source="ColBERT: 128",
        low=1,
        high=4096,
    )
    match: Literal["any", "equal"] = setting(
        "any",
        meaning="any: vectors of length 1 meet all others (ColBERT); equal: vectors of any length "
        "meet only vectors of the same word-piece, [CLS] included (COIL)",
        source="ColBERT; equal: COIL, NAACL 2021",
    )
    expansion: Literal["none", "unattended", "attended"] = setting(
        "unattended",
        meaning="whether [MASK] fills queries up to `query_length`, and whether a query's other "
        "word-pieces attend to it; no effect with match equal, which has none",
        source="ColBERT: unattended",
    )
    skip_punctuation: bool = setting(
        True,
        meaning="punctuation marks of passages have no vectors; no effect with match equal",
        source="ColBERT: mask_punctuation",
    )

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including its head."""
        keys = ("head", "dimensions", "match", "expansion", "skip_punctuation")
        return super().model() | pick(asdict(self), keys)


@settings
class Sparse(Retriever):
    """A retriever with a weight for every word-piece of the vocabulary, most of them 0."""

    # settings of the losses of `target: ranking`
    ranked = (
        "query_flops", "passage_flops", "flops_warmup", "temperature", "in_batch", "symmetric",
        "alpha",
    )  # fmt: skip

    head: Literal["sparse"] = setting(
        "sparse",
        meaning="a weight per word-piece; most are 0",
        source="SPLADE v2",
    )
    pieces: Literal["all", "own"] = setting(
        "all",
        meaning="word-pieces that can have a weight: all, by the language-model head (SPLADE); "
        "own: those of the text, by a new linear layer with ReLU; the largest weight of a repeated "
        "word-piece counts (uniCOIL)",
        source="SPLADE v2; own: uniCOIL, as in Tevatron",
    )
    target: Literal["ranking", "recall"] = setting(
        "ranking",
        meaning="ranking: trained by the losses of retrievers; recall, with pieces own: a "
        "passage's weights are regressed on the share of its training queries that contain the "
        "word-piece, a query's weights are counts (DeepCT)",
        source="SPLADE v2; recall: DeepCT, section 3.1",
    )
    query_flops: float = setting(
        5e-3,
        meaning="weight of the FLOPS regulariser of queries, the sum over word-pieces of the "
        "squared mean weight in the global batch; larger: fewer entries",
        source="SPLADE, SIGIR 2023: 5e-3",
        low=0,
        high=1e6,
    )
    passage_flops: float = setting(
        5e-3,
        meaning="weight of the FLOPS regulariser of passages",
        source="SPLADE, SIGIR 2023: 5e-3",
        low=0,
        high=1e6,
    )
    flops_warmup: float = setting(
        0.33,
        meaning="steps over which both weights grow quadratically from 0; a value up to 1 is a "
        "share of all steps. Without this warm-up, all entries of the vectors may become 0",
        source="SPLADE: a third",
        low=0,
    )

    def __post_init__(self) -> None:
        """Refuse a fractional number of steps, and a temperature from the initial scores."""
        super().__post_init__()
        if self.target == "recall" and self.pieces == "all":
            raise InputError(
                "target is recall and pieces is all; allowed: target recall with pieces own"
            )
        if not self.temperature:
            raise InputError(
                "temperature is 0, the spread of the initial scores, but the vectors of a sparse "
                "head are not sparse before training; allowed with head sparse: from 0.001, such "
                "as 1"
            )
        if self.flops_warmup > 1 and self.flops_warmup % 1:
            raise InputError(
                f"flops_warmup is {self.flops_warmup}; allowed: a share up to 1, or whole steps"
            )

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model, including its head."""
        own = pick(asdict(self), ("pieces", "target")) if self.pieces == "own" else {}
        return super().model() | {"head": self.head} | own

    def values(self, *, teacher: bool = True) -> dict[str, Any]:
        """Return the settings that affect a training; `target: recall` reads no other loss's."""
        found = super().values(teacher=teacher)
        if self.target == "ranking":
            return found
        return {key: value for key, value in found.items() if key not in self.ranked}


@settings
class Reranker(Stage):
    """The training of a reranker."""

    lengths = ("max_length",)

    kind: Literal["reranker"] = setting(
        "reranker", meaning="a cross-encoder of query and passage", source="3.4"
    )
    max_length: int = setting(
        192, unit="word-pieces", meaning="length at which pairs are cut", source="SimLM", low=16
    )
    forward_factor: int = setting(
        4,
        meaning="gradients are computed only for the best group / forward_factor passages",
        source="SimLM",
        low=1,
    )
    rdrop: float = setting(
        1.0, meaning="weight of R-Drop; 0 is off", source="SimLM", low=0, high=1e6
    )

    def __post_init__(self) -> None:
        """Refuse a group that the factor does not divide."""
        super().__post_init__()
        if self.group % self.forward_factor or self.group // self.forward_factor < 2:
            raise InputError(
                f"group is {self.group} and forward_factor is {self.forward_factor}; allowed: a "
                "factor that divides group, with a quotient of at least 2"
            )


AnyRetriever = Annotated[Dense | Multi | Sparse, Field(discriminator="head")]
AnyStage = Annotated[AnyRetriever | Reranker, Field(discriminator="kind")]
