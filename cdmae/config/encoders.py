"""What is pre-trained: where an encoder starts, how important its words are, its objective and masks."""

from __future__ import annotations

import math
import os
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from cdmae.errors import InputError
from cdmae.fields import asdict, others, pick, setting, unused


def concepts(package: str) -> list[str]:
    """List the names that a folder of the library offers to the config: those of its files and packages."""
    modules = pkgutil.iter_modules([str(Path(__file__).parent.parent / package)])
    return sorted(module.name for module in modules if not module.name.startswith("_"))


Objective = Literal[(*concepts("pretraining/objectives"), "none")]
Masking = Literal[tuple(concepts("masking/strategies"))]
HomePath = Annotated[str, AfterValidator(os.path.expanduser)]  # most readers of a path would not know ~

DECODER = ("mae", "retromae", "dupmae", "simlm", "cotmae", "master")  # objectives whose decoder has a mask of its own
BOTTLENECKED = ("bowdpr", "cotmae", "dupmae", "mae", "master", "retromae", "simlm")  # whose vector is of the last layer
LAYERED = ("mae", "simlm", "cotmae", "master", "condenser", "cocondenser")  # objectives that choose its depth
READ_IMPORTANCE = ("importance", "pmi_span")  # maskings
MASKING = ("decoder_ratio", "sigma", "max_length")  # what the masks that are shown depend on
NOT_PRETRAINED = ("start", "objective", "seed")  # the keys of an encoder with objective none


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where an encoder starts: a checkpoint, or random weights and a tokenizer trained on a collection."""

    checkpoint: HomePath = setting(
        "", meaning="BERT, RoBERTa, XLM-RoBERTa, DistilBERT, MPNet, ELECTRA, MiniLM or ModernBERT in transformers "
        "format: a folder (a relative path begins at the checkout), or a name at the Hugging Face hub (name@revision "
        "for a commit, tag or branch); excludes the other keys",
        source="4.1: Shitao/RetroMAE",
    )  # fmt: skip
    collection: str = setting("", meaning="its text trains the tokenizer of a random start", names="collections")
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
        if self.hidden % self.heads:
            raise InputError(f"hidden is {self.hidden} and heads is {self.heads}; allowed: heads that divide hidden")

    def values(self) -> dict[str, Any]:
        """Return what matters: the checkpoint, or everything else."""
        return pick(asdict(self), ["checkpoint"]) if self.checkpoint else asdict(self, ["checkpoint"])

    def tokenizer(self) -> dict[str, Any]:
        """Return what matters to the tokenizer."""
        return pick(asdict(self), ("checkpoint",) if self.checkpoint else ("collection", "vocabulary"))


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
        return pick(asdict(self), ("unit", "window"))


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A pre-training: where it starts, on which passages, with which objective and masks."""

    start: str = setting(meaning="name of an entry of `starts`", needed=True, names="starts")
    after: str = setting(
        "", meaning="the encoder that it goes on from, with its weights and its `start`; none: from the start itself",
        source="table 5: general, then domain", later=True, names="encoders",
    )  # fmt: skip
    collection: str = setting(
        "", meaning="its passages are the corpus; none for objective none", needed=True, names="collections"
    )
    objective: Objective = setting(
        "mae", meaning="a file in cdmae/pretraining/objectives, or none: not pre-trained", source="3.1"
    )
    encoder_masking: Masking = setting("whole_word", meaning="a file in cdmae/masking/strategies", source="decision 11")
    decoder_masking: Masking = setting(
        "importance", meaning="a file in cdmae/masking/strategies", source="3.2, Algorithm 1", only=DECODER
    )
    importance: str = setting(
        "", meaning="name of an entry of `importance`; where a masking is importance or pmi_span", needed=True,
        names="importance",
    )  # fmt: skip
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
    generator: HomePath = setting(
        "", only=("simlm",), meaning="a frozen generator of words with the start's vocabulary, a folder or a name "
        "(or name@revision) at the hub in transformers format; none: a small one is trained along",
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
        names="encoders",
    )
    learning_rate: float = setting(3e-4, meaning="peak, linear schedule", source="A", above=0, high=1)
    weight_decay: float = setting(0.01, meaning="of AdamW", source="A", low=0, high=10)
    warmup_ratio: float = setting(0.1, meaning="share of the steps that warm up", source="A", low=0, high=1)
    max_grad_norm: float = setting(1.0, meaning="gradients are clipped here", source="SimLM", above=0, high=1e9)
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "auto", meaning="auto: bf16 on GPUs and CPUs (AVX512-BF16) that have it"
    )
    seed: int = setting(-1, meaning="seed of this entry alone, trained once whatever `seeds`; -1: the config's", low=-1)

    def __post_init__(self) -> None:
        """Refuse shares above one and a snapshot after the end."""
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
        return any(masking in READ_IMPORTANCE for masking in self.maskings)

    @property
    def unread(self) -> dict[str, str]:
        """Say what another setting leaves without effect, and why; `cdmae.config.load` sets it to its default."""
        noise = {} if self.masked_by_importance else {"sigma": "no masking is importance"}
        if not self.reads_importance:
            noise["importance"] = f"no masking is {' or '.join(READ_IMPORTANCE)}"
        return noise | ({"epochs": f"steps is {self.steps}, and counts instead"} if self.steps else {})

    def values(self) -> dict[str, Any]:
        """Return what matters: everything that the objective knows, or that there is no pre-training."""
        if not self.pretrained:
            return pick(asdict(self), NOT_PRETRAINED)
        return asdict(self, others(Encoder, self.objective) | unused(self))

    def masking(self) -> dict[str, Any]:
        """Return what matters to the masks that are shown (`cdmae.masking.terms`)."""
        return pick(asdict(self), MASKING)
