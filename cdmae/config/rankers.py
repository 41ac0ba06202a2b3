"""What ranks: the recipes of supervised training, and the systems, most of them trained by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from cdmae.config.encoders import HomePath
from cdmae.config.systems import TRAINED
from cdmae.errors import InputError
from cdmae.fields import asdict, others, setting, unused

RETRIEVER, RERANKER = ("retriever",), ("reranker",)  # which kinds of stages and systems know a setting


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A recipe of supervised training; systems bring the encoder, the negatives and the teacher."""

    kind: Literal["retriever", "reranker"] = setting(meaning="what is trained")
    collection: str = setting(
        meaning="its queries, judgments and passages are trained on", needed=True, names="collections"
    )
    split: str = setting("train", meaning="which of its queries")
    depth: int = setting(
        200, unit="passages", meaning="negatives are drawn from the best so many of the run",
        source="4.1: K1 1000, K2 and K3 200", low=1, high=100_000,
    )  # fmt: skip
    queries: int = setting(64, meaning="global batch, whatever the devices; 32 in stage 3", source="A", low=1)
    group: int = setting(
        32, unit="passages", meaning="per query, one of them positive; 64 in stage 3", source="A", low=2, high=100_000
    )
    epochs: float = setting(3, meaning="passes over the queries", source="A", above=0, high=10_000)
    learning_rate: float = setting(2e-5, meaning="peak, linear schedule", source="A", above=0, high=1)
    warmup_steps: float = setting(
        1000, meaning="linear warm-up: whole steps, or below 1 a share of all", source="SimLM", low=0
    )
    weight_decay: float = setting(0.0, meaning="of AdamW", source="SimLM", low=0, high=10)
    max_grad_norm: float = setting(1.0, meaning="gradients are clipped here", source="SimLM", above=0, high=1e9)
    random_negatives: int = setting(
        10, unit="passages", meaning="random ones beside the mined, per query", source="SimLM", low=0, high=100_000
    )
    margin: float = setting(
        0.0, meaning="against false negatives: a mined passage is a negative only if the system that mined it gives it "
        "at most 1 - margin times the score of the positive, of several the best; 0 is off",
        source="NV-Retriever, TopK-PercPos: 0.05", low=0, high=0.99, later=True,
    )  # fmt: skip
    chunk: int = setting(
        64, unit="passages", meaning="computed at a time (gradient caching): memory; of results the rounding", low=1
    )
    query_length: int = setting(
        32, unit="word-pieces", meaning="queries are cut here", source="SimLM", low=8, only=RETRIEVER
    )
    passage_length: int = setting(
        144, unit="word-pieces", meaning="cuts passages", source="SimLM", low=8, only=RETRIEVER
    )
    pooling: Literal["cls", "mean"] = setting(
        "cls", meaning="the vector of a text: the state of its first token, or the mean over all its tokens",
        source="SimLM; mean: Sentence-BERT", only=RETRIEVER, later=True,
    )  # fmt: skip
    similarity: Literal["dot", "cosine"] = setting(
        "dot", meaning="dot: of the vectors as they are; cosine: of vectors of length 1", source="3.4; cosine: SimLM",
        only=RETRIEVER, later=True,
    )  # fmt: skip
    in_batch: bool = setting(
        True, meaning="passages of the other queries are negatives too", source="3.4", only=RETRIEVER
    )
    temperature: float = setting(
        1.0, only=RETRIEVER, meaning="its scores are divided by this in the losses, the teacher's are not; 0: by their "
        "standard deviation within a query of the first batch, before training", source="3.4: 1", low=0, high=1e6,
    )  # fmt: skip
    alpha: float = setting(
        0.2, meaning="weight of the contrastive loss, with a teacher", source="4.1", low=0, high=1e6, only=RETRIEVER
    )
    max_length: int = setting(192, unit="word-pieces", meaning="cuts pairs", source="SimLM", low=16, only=RERANKER)
    forward_factor: int = setting(
        4, meaning="the best group / forward_factor passages are back-propagated", source="SimLM", low=1, only=RERANKER
    )
    rdrop: float = setting(1.0, meaning="weight of R-Drop; 0 is off", source="SimLM", low=0, high=1e6, only=RERANKER)
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "auto", meaning="auto: bf16 on GPUs and CPUs (AVX512-BF16) that have it"
    )
    seed: int = setting(-1, meaning="seed of this entry alone, trained once whatever `seeds`; -1: the config's", low=-1)

    def __post_init__(self) -> None:
        """Refuse half a step, a tiny temperature, and a group that cannot be filled or divided by the factor."""
        if 0 < self.temperature < 1e-3:
            raise InputError(f"temperature is {self.temperature}; allowed: 0, or from 0.001")
        if self.warmup_steps >= 1 and self.warmup_steps % 1:
            raise InputError(f"warmup_steps is {self.warmup_steps}; allowed: a share below 1, or whole steps")
        most = 1 + self.depth + self.random_negatives
        if self.group > most:
            raise InputError(
                f"group is {self.group}; allowed: up to {most}, one positive, depth {self.depth} and "
                f"random_negatives {self.random_negatives}"
            )
        if self.kind == "reranker" and (self.group % self.forward_factor or self.group // self.forward_factor < 2):
            raise InputError(
                f"group is {self.group} and forward_factor is {self.forward_factor}; allowed: a factor that "
                "divides group into at least 2"
            )

    def values(self, *, teacher: bool = True) -> dict[str, Any]:
        """Return what matters to a training of this kind, with or without a teacher."""
        left_out = others(Stage, self.kind) | unused(self) | (set() if teacher else {"alpha"})
        return asdict(self, left_out)


@dataclass(frozen=True, kw_only=True)
class System:
    """Queries in, ranked passages with scores out."""

    kind: Literal["bm25", "retriever", "reranker", "fusion", "external", "run"] = setting(meaning="what ranks")
    encoder: str = setting(
        "", meaning="the entry of `encoders` that it starts from", only=TRAINED, needed=True, names="encoders"
    )
    stage: str = setting("", meaning="entry of `stages`, of the same kind", only=TRAINED, needed=True, names="stages")
    negatives: str = setting(
        "", meaning="the system whose run gives the negatives", source="3.4", only=TRAINED, needed=True, names="systems"
    )
    teacher: str = setting(
        "", meaning="the reranker to distil from, or the runs of others, which score the passages that they rank; none "
        "without", source="3.4, stage 3", only=RETRIEVER, names="systems",
    )  # fmt: skip
    reranks: str = setting(
        "", meaning="the system whose run it orders anew", only=RERANKER, needed=True, names="systems"
    )
    depth: int = setting(100, unit="passages", meaning="orders the best so many", low=1, high=100_000, only=RERANKER)
    of: tuple[str, ...] = setting((), meaning="at least two systems", only=("fusion",), needed=True, names="systems")
    method: Literal["reciprocal_rank", "convex"] = setting(
        "reciprocal_rank", meaning="what is summed: 1 / (k + rank), or scores scaled to 0 .. 1 over each list",
        source="Cormack et al. 2009; convex: Bruch et al. 2023", only=("fusion",), later=True,
    )  # fmt: skip
    k: float = setting(
        60.0, meaning="of reciprocal ranks", source="Cormack et al. 2009", above=0, high=1e6, only=("fusion",)
    )
    weights: tuple[Annotated[float, Field(strict=True, ge=0, le=1e6)], ...] = setting(
        (), meaning="of each of its systems; none: equal ones, or those that `tuned_on` chooses", only=("fusion",),
        later=True,
    )  # fmt: skip
    tuned_on: tuple[str, ...] = setting(
        (), meaning="collection and split, as in [pydocs, dev], whose judgments choose the weights by the first of the "
        "evaluation's measures", only=("fusion",), later=True,
    )  # fmt: skip
    k1: float = setting(0.9, meaning="saturation of term counts", source="Anserini", low=0, high=100, only=("bm25",))
    b: float = setting(0.4, meaning="normalisation by length", source="Anserini", low=0, high=1, only=("bm25",))
    triples: str = setting(
        "", only=("bm25",), meaning="negatives are published triples of the collection, such as train/triples-v2, not "
        "a search", source="RetroMAE",
    )  # fmt: skip
    model: HomePath = setting(
        "", only=("external",), needed=True, meaning="a retriever that sentence-transformers loads: a folder (a "
        "relative path begins at the checkout), or a name or name@revision at the hub",
    )  # fmt: skip
    query_length: int = setting(0, unit="word-pieces", meaning="cut; 0 is the model's own", low=0, only=("external",))
    passage_length: int = setting(0, unit="word-pieces", meaning="cut; 0 is the model's own", low=0, only=("external",))
    runs: dict[str, dict[str, HomePath]] = setting(
        {}, only=("run",), needed=True, meaning="TREC files of somebody's system, by collection and split, as in "
        "{pydocs: {dev: runs/theirs.trec}}; a relative path begins at the checkout", later=True,
        names="collections",
    )  # fmt: skip

    def values(self) -> dict[str, Any]:
        """Return the settings of its kind."""
        return asdict(self, others(System, self.kind))
