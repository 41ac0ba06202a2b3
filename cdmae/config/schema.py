"""Every setting: type, default, unit, meaning and source; the only schema. A config file holds values.

The defaults are the paper's; a setting without a value there has that of the prior work it follows. Section numbers
are the paper's, `A` is its appendix. Named things (``encoders: {cdmae: ...}``) refer to each other by name: these
names are the edges of the workflow's graph, and `cdmae.config.checks` refuses those that lead nowhere.
"""

from __future__ import annotations

import math
import os
import pkgutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from cdmae import collections
from cdmae.config import checks
from cdmae.config import seeds as replicas
from cdmae.errors import InputError
from cdmae.fields import LARGEST, asdict, others, setting, show, unused

MOST_SEEDS = 100


def concepts(package: str) -> list[str]:
    """List the names that a folder of the library offers to the config: those of its files and packages."""
    modules = pkgutil.iter_modules([str(Path(__file__).parent.parent / package)])
    return sorted(module.name for module in modules if not module.name.startswith("_"))


Objective = Literal[(*concepts("pretraining/objectives"), "none")]
Masking = Literal[tuple(concepts("masking/strategies"))]
Precision = Literal["auto", "fp32", "bf16"]

RETRIEVER, RERANKER = ("retriever",), ("reranker",)  # which kinds of stages and systems know a setting
TRAINED = (*RETRIEVER, *RERANKER)
DECODER = ("mae", "retromae", "dupmae", "simlm", "cotmae", "master")  # objectives whose decoder has a mask of its own
BOTTLENECKED = ("bowdpr", "cotmae", "dupmae", "mae", "master", "retromae", "simlm")  # whose vector is of the last layer
LAYERED = ("mae", "simlm", "cotmae", "master", "condenser", "cocondenser")  # objectives that choose its depth


def _seed() -> Any:
    return setting(-1, meaning="seed of this entry alone, trained once whatever `seeds`; -1: the config's", low=-1)


def _precision() -> Any:
    return setting("auto", meaning="auto: bf16 on GPUs and CPUs (AVX512-BF16) that have it")


def _expand(settings: Any, key: str) -> None:
    """Replace ``~`` in a path by the home folder, because most readers of the path would not know it."""
    object.__setattr__(settings, key, os.path.expanduser(getattr(settings, key)))  # settings are frozen


@dataclass(frozen=True)
class Collection:
    """Passages, queries and judgments: a `source` (a file in ``cdmae/collections/sources``) and its own settings."""

    source: str
    settings: Any

    @property
    def module(self) -> str:
        """Name the module that knows the source."""
        return f"cdmae.collections.sources.{self.source}"

    @property
    def threads(self) -> int:
        """Say how many threads help to make it."""
        threads = getattr(collections.source(self.source), "threads", None)
        return threads(self.settings) if threads else 1

    def values(self) -> dict[str, Any]:
        """Return plain values, as they stand in the config."""
        return {"source": self.source, **asdict(self.settings)}


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where an encoder starts: a checkpoint, or random weights and a tokenizer trained on a collection."""

    checkpoint: str = setting(
        "", meaning="BERT, RoBERTa, XLM-RoBERTa, DistilBERT, MPNet, ELECTRA, MiniLM or ModernBERT in transformers "
        "format: a folder (a relative path begins at the checkout), or a name at the Hugging Face hub; excludes the "
        "other keys",
        source="4.1: Shitao/RetroMAE",
    )  # fmt: skip
    collection: str = setting("", meaning="its text trains the tokenizer of a random start")
    vocabulary: int = setting(30522, unit="word-pieces", meaning="size", source="BERT base", low=100, high=2**20)
    layers: int = setting(12, meaning="Transformer layers", source="BERT base", low=1, high=1000)
    hidden: int = setting(768, unit="dimensions", meaning="width d_enc", source="BERT base", low=2, high=2**16)
    heads: int = setting(12, meaning="attention heads; divide `hidden`", source="BERT base", low=1, high=1000)
    feedforward: int = setting(3072, unit="dimensions", meaning="inner width", source="BERT base", low=1, high=2**18)
    positions: int = setting(512, unit="word-pieces", meaning="longest input", source="BERT base", low=8, high=2**16)
    initializer: float = setting(
        0.02, meaning="standard deviation of the random weights", source="BERT base", above=0, high=10
    )
    dropout: float = setting(
        0.1, meaning="share of hidden values dropped in training", source="BERT base", low=0, high=0.9
    )

    def __post_init__(self) -> None:
        """Refuse a width that the heads do not divide."""
        _expand(self, "checkpoint")
        if self.hidden % self.heads:
            raise InputError(f"hidden is {self.hidden} and heads is {self.heads}; allowed: heads that divide hidden")

    def values(self) -> dict[str, Any]:
        """Return what matters: the checkpoint, or everything else."""
        return checks.pick(asdict(self), ["checkpoint"]) if self.checkpoint else asdict(self, ["checkpoint"])

    def tokenizer(self) -> dict[str, Any]:
        """Return what matters to the tokenizer."""
        return checks.pick(asdict(self), ("checkpoint",) if self.checkpoint else ("collection", "vocabulary"))


@dataclass(frozen=True, kw_only=True)
class Importance:
    """How the importance of words is estimated: equations 7 and 8."""

    unit: Literal["word", "wordpiece"] = setting("word", meaning="what an n-gram is made of", source="decision 3")
    window: int = setting(4, unit="words", meaning="longest n-gram, L in equation 8", source="3.2", low=2, high=8)
    pmi: Literal["min", "product"] = setting(
        "min", source="decision 1, PMI-Masking eq. 3",
        meaning="PMI of more than two words: minimum over their segmentations, or product of single words",
    )  # fmt: skip
    normaliser: Literal["order", "pooled"] = setting(
        "order", source="decision 2",
        meaning="what a count is divided by: all n-grams of its order, or of all orders",
    )  # fmt: skip
    edges: Literal["literal", "mean"] = setting(
        "literal", source="decision 6",
        meaning="at the ends of a passage: equation 8 as it stands (a missing n-gram is 0), or the mean of the rest",
    )  # fmt: skip

    def values(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def counting(self) -> dict[str, Any]:
        """Return what matters to the n-gram counts."""
        return checks.pick(asdict(self), ("unit", "window"))


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A pre-training: where it starts, on which passages, with which objective and masks."""

    start: str = setting(meaning="name of an entry of `starts`")
    after: str = setting(
        "", meaning="the encoder that it goes on from, with its weights and its `start`; none: from the start itself",
        source="table 5: general, then domain", later=True,
    )  # fmt: skip
    collection: str = setting("", meaning="its passages are the corpus; none for objective none")
    objective: Objective = setting(
        "mae", meaning="a file in cdmae/pretraining/objectives, or none: not pre-trained", source="3.1"
    )
    encoder_masking: Masking = setting("whole_word", meaning="a file in cdmae/masking/strategies", source="decision 11")
    decoder_masking: Masking = setting(
        "importance", meaning="a file in cdmae/masking/strategies", source="3.2, Algorithm 1", only=DECODER
    )
    importance: str = setting("", meaning="name of an entry of `importance`; where a masking is importance or pmi_span")
    encoder_ratio: float = setting(0.3, meaning="share of masked tokens, p_enc", source="4.1", above=0, high=0.95)
    decoder_ratio: float = setting(
        0.5, meaning="share of masked tokens, p_dec", source="4.1", above=0, high=0.95, only=DECODER
    )
    sigma: float = setting(
        1.0, unit="nats", meaning="standard deviation of the noise on importance; .inf is uniform",
        source="3.2, footnote", low=0, high=math.inf,
    )  # fmt: skip
    mask_share: float = setting(0.8, meaning="masked tokens that become [MASK]", source="eq. 1", low=0, high=1)
    random_share: float = setting(0.1, meaning="masked tokens that become random", source="eq. 1", low=0, high=1)
    decoder_layers: int = setting(
        2, meaning="Transformer layers of a decoder", source="3.1", low=1, high=100, only=LAYERED
    )
    projection: bool = setting(
        True, meaning="linear projection of the bottleneck, equation 4", source="table 4", only=("mae",)
    )
    pooling: Literal["cls", "mean"] = setting(
        "cls", meaning="the vector that it trains: the state of the first token, or the mean over all tokens; best as "
        "the retrievers that start here have it",
        source="eq. 2", only=BOTTLENECKED, later=True,
    )  # fmt: skip
    bag_weight: float = setting(
        1.0, meaning="weight of the bag of words", source="Ma et al. 2024", low=0, high=1e6, only=("bowdpr", "dupmae")
    )
    generator: str = setting(
        "", only=("simlm",), meaning="a frozen generator of words with the start's vocabulary, a folder or a name at "
        "the hub in transformers format; none: a small one is trained along",
        source="SimLM: google/electra-base-generator", later=True,
    )  # fmt: skip
    early_layers: int = setting(
        0, only=("condenser", "cocondenser"), meaning="encoder layers before the head's token states; 0: half of them",
        source="Condenser: 6 of 12", low=0, high=1000,
    )  # fmt: skip
    max_length: int = setting(150, unit="word-pieces", meaning="cuts passages", source="4.3", low=8, high=2**16)
    batch: int = setting(2048, unit="passages", meaning="global batch, whatever the devices", source="A", low=1)
    epochs: float = setting(20, meaning="passes over the collection", source="A", above=0, high=10_000)
    steps: int = setting(0, meaning="instead of `epochs`; 0: epochs x passages // batch", source="A: 86,346", low=0)
    take_step: int = setting(0, meaning="the step whose weights are kept; 0 is the last", source="A: 80,000", low=0)
    snapshot_of: str = setting(
        "",
        meaning="the encoder whose training this is the step `take_step` of; all else is that encoder's",
        later=True,
    )
    learning_rate: float = setting(3e-4, meaning="peak, linear schedule", source="A", above=0, high=1)
    weight_decay: float = setting(0.01, meaning="of AdamW", source="A", low=0, high=10)
    warmup_ratio: float = setting(0.1, meaning="share of the steps that warm up", source="A", low=0, high=1)
    max_grad_norm: float = setting(1.0, meaning="gradients are clipped here", source="SimLM", above=0, high=1e9)
    precision: Precision = _precision()
    seed: int = _seed()

    def __post_init__(self) -> None:
        """Refuse shares above one and a snapshot after the end."""
        _expand(self, "generator")
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise InputError(
                f"mask_share is {self.mask_share} and random_share is {self.random_share}; allowed: a sum up to 1"
            )
        if self.steps and self.take_step > self.steps:
            raise InputError(f"take_step is {self.take_step}; allowed: up to steps, {self.steps}")

    @property
    def pretrained(self) -> bool:
        """Say whether there is anything to train."""
        return self.objective != "none"

    @property
    def maskings(self) -> list[str]:
        """List the masking of each side that its objective has, the encoder's first."""
        if not self.pretrained:
            return []
        decoder = [] if "decoder_masking" in others(Encoder, self.objective) else [self.decoder_masking]
        return [self.encoder_masking, *decoder]

    @property
    def masked_by_importance(self) -> bool:
        """Say whether one of its masks is importance-aware."""
        return "importance" in self.maskings

    @property
    def reads_importance(self) -> bool:
        """Say whether one of its masks reads the importance, or the n-grams that it is estimated from."""
        return any(masking in checks.READ_IMPORTANCE for masking in self.maskings)

    @property
    def unread(self) -> dict[str, str]:
        """Say what another setting leaves without effect, and why; `cdmae.config.load` sets it to its default."""
        noise = {} if self.masked_by_importance else {"sigma": "no masking is importance"}
        if not self.reads_importance:
            noise["importance"] = f"no masking is {' or '.join(checks.READ_IMPORTANCE)}"
        return noise | ({"epochs": f"steps is {self.steps}, and counts instead"} if self.steps else {})

    def values(self) -> dict[str, Any]:
        """Return what matters: everything that the objective knows, or that there is no pre-training."""
        if not self.pretrained:
            return checks.pick(asdict(self), checks.NOT_PRETRAINED)
        return asdict(self, others(Encoder, self.objective) | unused(self))

    def masking(self) -> dict[str, Any]:
        """Return what matters to the masks that are shown (`cdmae.masking.terms`)."""
        return checks.pick(asdict(self), checks.MASKING)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A recipe of supervised training; systems bring the encoder, the negatives and the teacher."""

    kind: Literal["retriever", "reranker"] = setting(meaning="what is trained")
    collection: str = setting(meaning="its queries, judgments and passages are trained on")
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
        64, unit="passages", meaning="computed at a time (gradient caching): memory, not results", low=1
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
    precision: Precision = _precision()
    seed: int = _seed()

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
    encoder: str = setting("", meaning="the entry of `encoders` that it starts from", only=TRAINED, needed=True)
    stage: str = setting("", meaning="entry of `stages`, of the same kind", only=TRAINED, needed=True)
    negatives: str = setting(
        "", meaning="the system whose run gives the negatives", source="3.4", only=TRAINED, needed=True
    )
    teacher: str = setting(
        "", meaning="the reranker to distil from, or the runs of others, which score the passages that they rank; none "
        "without", source="3.4, stage 3", only=RETRIEVER,
    )  # fmt: skip
    reranks: str = setting("", meaning="the system whose run it orders anew", only=RERANKER, needed=True)
    depth: int = setting(100, unit="passages", meaning="orders the best so many", low=1, high=100_000, only=RERANKER)
    of: tuple[str, ...] = setting((), meaning="at least two systems", only=("fusion",), needed=True)
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
    model: str = setting(
        "", only=("external",), needed=True, meaning="a retriever that sentence-transformers loads: a folder (a "
        "relative path begins at the checkout), or a name at the hub",
    )  # fmt: skip
    query_length: int = setting(0, unit="word-pieces", meaning="cut; 0 is the model's own", low=0, only=("external",))
    passage_length: int = setting(0, unit="word-pieces", meaning="cut; 0 is the model's own", low=0, only=("external",))

    runs: dict[str, dict[str, str]] = setting(
        {}, only=("run",), needed=True, meaning="TREC files of somebody's system, by collection and split, as in "
        "{pydocs: {dev: runs/theirs.trec}}; a relative path begins at the checkout", later=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Find a model and runs in the home folder."""
        _expand(self, "model")
        runs = {
            name: {split: os.path.expanduser(file) for split, file in files.items()}
            for name, files in self.runs.items()
        }
        object.__setattr__(self, "runs", runs)

    def values(self) -> dict[str, Any]:
        """Return the settings of its kind."""
        return asdict(self, others(System, self.kind))

    def sources(self) -> dict[tuple[str | int, ...], str]:
        """Map where it names the systems that it needs, such as ``("of", 1)``, to their names."""
        single = {(key,): getattr(self, key) for key in ("negatives", "teacher", "reranks") if getattr(self, key)}
        return {**single, **{("of", place): name for place, name in enumerate(self.of)}}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What every system is measured on."""

    collections: dict[str, tuple[str, ...]] = setting(
        {}, meaning="collection: list of its splits; an empty one: only searched, by `./run search`"
    )
    measures: tuple[str, ...] = setting(
        ("RR@10", "R@50", "R@1000", "nDCG@10"),
        meaning="means of ir_measures, in its notation: R(rel=2)@50, Judged@10",
        source="4.1",
    )
    relevant: dict[str, dict[str, Annotated[int, Field(strict=True, ge=1, le=1000)]]] = setting(
        {}, meaning="the lowest relevant grade of a split, as in {msmarco: {dl19: 2}}; without, 1. Measures that ask "
        "for one then have names like RR(rel=2)@10; nDCG does not ask", source="TREC DL: 2",
    )  # fmt: skip
    lengths: dict[str, Annotated[int, Field(strict=True, ge=16, le=LARGEST)]] = setting(
        {}, unit="word-pieces", meaning="the length at which queries, passages and pairs of a collection are cut when "
        "it is searched, as in {nq: 512}; without, that of the stage or the system", source="RetroMAE: BEIR at 512",
    )  # fmt: skip
    depth: int = setting(1000, unit="passages", meaning="length of the runs", source="4.1", low=1, high=100_000)
    baseline: str = setting("", meaning="the system that the others are compared with; none: no comparison")
    keep_vectors: bool = setting(
        True, meaning="passages' vectors stay on disk, for `./run search`; false: they are made while they are searched"
    )

    def measured(self, collection: str, split: str) -> list[str]:
        """List the measures of a target, with the grade that is relevant there."""
        grade = self.relevant.get(collection, {}).get(split, 1)
        parsed = {name: checks.read_measure(name) for name in self.measures if grade > 1}
        plain = [name for name, measure in parsed.items() if "rel" in measure.SUPPORTED_PARAMS.keys() - measure.params]
        return list(dict.fromkeys(str(parsed[name](rel=grade)) if name in plain else name for name in self.measures))


@dataclass(frozen=True, kw_only=True)
class Report:
    """The page at the end."""

    title: str = setting("Importance-aware masking for dense retrieval", meaning="heading of the page")
    example: str = setting(
        "hokey stuff is a crossword puzzle clue that we have spotted 4 times",
        meaning="text that is shaded by importance", source="figure 3",
    )  # fmt: skip
    noise: float = setting(
        0.3, unit="points", meaning="a difference that another seed may make; that of `seeds`, where larger, counts",
        source="recipes of the field, MRR@10 on MS MARCO", low=0, high=100,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole config, checked."""

    results: str = setting("results", meaning="folder of every artefact; a relative path begins at the checkout")
    seed: int = setting(42, meaning="of everything random; the data depend on none", source="A", low=0)
    seeds: tuple[Annotated[int, Field(strict=True, ge=0, le=LARGEST)], ...] = setting(
        (), meaning="every training once for each, `seed` the first; entries with a `seed` of their own keep it; none: "
        "only `seed`",
    )  # fmt: skip
    collections: dict[str, Collection] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    importance: dict[str, Importance] = field(default_factory=dict)
    encoders: dict[str, Encoder] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    systems: dict[str, System] = field(default_factory=dict)
    evaluation: Evaluation = field(default_factory=Evaluation)
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        """Refuse seeds that are too many, not all different, or do not begin with `seed`."""
        _expand(self, "results")
        if len(self.seeds) > MOST_SEEDS:
            raise InputError(f"seeds has {len(self.seeds)} entries; allowed: up to {MOST_SEEDS}")
        if self.seeds and (len(set(self.seeds)) < len(self.seeds) or self.seeds[0] != self.seed):
            raise InputError(
                f"seeds is {show(list(self.seeds))}; allowed: different ones, the first of them seed, {self.seed}"
            )

    def values(self) -> dict[str, Any]:
        """Return plain values that `cdmae.config.load` accepts again: all defaults written out, no replicas."""
        named = {section: getattr(self, section) for section in SECTIONS}
        return {
            "results": self.results,
            "seed": self.seed,
            "seeds": list(self.seeds),
            **{name: {key: part[key].values() for key in replicas.first(part)} for name, part in named.items()},
            "evaluation": asdict(self.evaluation),
            "report": asdict(self.report),
        }


SECTIONS = {  # of named entries, in the order in which they are made
    "collections": Collection,
    "starts": Start,
    "importance": Importance,
    "encoders": Encoder,
    "stages": Stage,
    "systems": System,
}
