"""Settings of encoders: their masks and their pre-training.

`cdmae.config.objectives` has a class for each objective, with its own settings.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Gt, Le

from cdmae.config import checks
from cdmae.errors import InputError
from cdmae.fields import (
    REQUIRED,
    Deviation,
    Entry,
    Length,
    Name,
    Natural,
    Of,
    Positive,
    PositiveReal,
    Precision,
    Rate,
    Real,
    Seed,
    Share,
    Weight,
    settings,
    suggestion,
    unfit,
)

if TYPE_CHECKING:
    from cdmae.config.schema import Config

STRATEGIES = Path(__file__).parents[1] / "masking/strategies"
ESTIMATES = ("importance", "ngrams")  # what a strategy can read
MaskRatio = Annotated[Real, Gt(0), Le(0.95)]
Masking = Literal[tuple(sorted(path.stem for path in STRATEGIES.glob("[!_]*.py")))]


@cache
def reads(strategy: str) -> str:
    """Return what a masking strategy reads: ``importance``, the ``ngrams`` behind it, or nothing.

    This is the constant READS of its file, which is not imported, because it imports numba.
    """
    path = STRATEGIES / f"{strategy}.py"
    found = re.search(r"^READS\b[^=\n]*=\s*(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    what = found[1].strip("\"'") if found else ""
    if found and what not in ESTIMATES:
        raise InputError(f"{path}: READS is {what}; expected {' or '.join(ESTIMATES)}")
    return what


@settings
class Encoder(Entry):
    """An encoder; the class attributes describe an encoder without pre-training."""

    pretrained = False  # whether it is pre-trained
    maskings = ()  # the maskings of the encoder and of the decoder, in this order
    collection = after = importance = generator = ""
    take_step = 0

    start: Annotated[Name, Of("starts")]
    """Initial weights, of `starts`."""
    seed: Seed = -1

    @property
    def masked_by_importance(self) -> bool:
        """Return whether the encoder's or the decoder's mask is importance-aware."""
        return "importance" in map(reads, self.maskings)

    @property
    def reads_importance(self) -> bool:
        """Return whether a mask reads the importance values, or the n-grams behind them."""
        return any(map(reads, self.maskings))

    def check(self, config: Config) -> None:
        """Refuse settings that conflict with other entries; keys in errors start at the entry."""


@settings
class Pretraining(Encoder):
    """A pre-trained encoder: the settings of all objectives.

    decoder_layers: the number of Transformer layers in addition to the encoder's.
    held_layers: the number of these layers with activations in memory at the same time.
    passes: the number of the encoder's passes with activations in memory at the same time.
    spans: the number of parts of a passage that the encoder reads separately.
    """

    pretrained, pooling, projection = True, "cls", False
    decoder_layers, held_layers = 0, 2
    passes = 1
    spans = 1

    after: Annotated[str, Of("encoders")] = ""
    """Encoder that it continues, with the same `start` [table 5]."""
    collection: Annotated[Name, Of("collections")] = REQUIRED
    """Collection that it reads."""
    encoder_masking: Masking = "whole_word"
    """Masking of the encoder's input [decision 11]."""
    importance: Annotated[str, Of("importance")] = ""
    """Entry of `importance`."""
    encoder_ratio: MaskRatio = 0.3
    """Share of masked tokens, p_enc [4.1]."""
    sigma: Deviation = 1.0
    """Standard deviation of noise on importance (nats); .inf: noise alone [3.2]."""
    mask_share: Share = 0.8
    """Share of [MASK] among masked tokens [eq. 1]."""
    random_share: Share = 0.1
    """Share of random tokens among masked ones [eq. 1]."""
    max_length: Length = 150
    """Longest passage (word-pieces) [4.3]."""
    batch: Positive = 2048
    """Passages per step, on all devices [A]."""
    epochs: PositiveReal = 20
    """Passes over the collection [A]."""
    steps: Natural = 0
    """Steps; 0: by `epochs` [A: 86,346]."""
    take_step: Natural = 0
    """Step that gives the weights; 0: the last [A: 80,000]."""
    learning_rate: Rate = 3e-4
    """Peak of the linear schedule [A]."""
    weight_decay: Weight = 0.01
    """Weight decay of AdamW [A]."""
    warmup_ratio: Share = 0.1
    """Share of warm-up steps [A]."""
    max_grad_norm: PositiveReal = 1.0
    """Maximum norm of gradients [SimLM]."""
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        """Refuse shares that add up to more than 1."""
        if self.mask_share + self.random_share > 1 + 1e-9:
            words = f" and random_share is {self.random_share}; expected a sum of at most 1"
            raise unfit(self, "mask_share", words)

    @property
    def maskings(self) -> tuple[str, ...]:
        """List the maskings of its objective: the encoder's, then the decoder's if it has one."""
        return (self.encoder_masking,)

    @property
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect."""
        has_effect = {
            "sigma": self.masked_by_importance,
            "importance": self.reads_importance,
            "epochs": not self.steps,
        }
        return tuple(key for key, has in has_effect.items() if not has)

    def check(self, config: Config) -> None:
        """Refuse settings that conflict with the start, the importance or the earlier encoders."""
        if self.reads_importance and not self.importance:
            words = f" is missing, which a masking needs; {suggestion('', config.importance)}"
            raise InputError(words, keys=("importance",))
        start = config.starts[self.start]
        before = config.encoders[self.after].start if self.after else self.start
        if self.start != before:
            words = f"; expected {before}, the start of encoders.{self.after}, which it continues"
            raise unfit(self, "start", words)
        by_words = [name for name in self.maskings if reads(name) == "ngrams"]
        if by_words and config.importance[self.importance].unit != "word":
            words = f"; expected for {by_words[0]}: an entry with unit word"
            raise unfit(self, "importance", words)
        owner = f"starts.{self.start}.positions"
        checks.check_lengths({"max_length": self.max_length}, start.known_positions(), owner)


@settings
class Pooled(Pretraining):
    """An objective that trains a vector from the last layer."""

    pooling: Literal["cls", "mean"] = "cls"
    """Vector: the first token's state, or the mean of all [eq. 2]."""


@settings
class DecoderMasked(Pretraining):
    """An objective with a separate mask for its decoder."""

    decoder_masking: Masking = "importance"
    """Masking of the decoder's input [Algorithm 1]."""
    decoder_ratio: MaskRatio = 0.5
    """Share of masked tokens, p_dec [4.1]."""

    @property
    def maskings(self) -> tuple[str, ...]:
        """List the masking of the encoder and of the decoder."""
        return (self.encoder_masking, self.decoder_masking)


@settings
class Decoded(DecoderMasked, Pooled):
    """An objective with a separately masked decoder that reads a vector from the last layer."""


@settings
class Layered(Pretraining):
    """An objective with a configurable decoder depth."""

    decoder_layers: Positive = 2
    """Transformer layers of a decoder [3.1]."""

    @property
    def held_layers(self) -> int:
        """Return the number of decoder layers with activations in memory at the same time."""
        return self.decoder_layers


@settings
class Bagged(Pretraining):
    """An objective that predicts a passage's bag of words."""

    bag_weight: Weight = 1.0
    """Weight of the bag of words."""
