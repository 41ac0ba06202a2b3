"""Settings of initial weights, with which an encoder's pre-training begins."""

from __future__ import annotations

from typing import Any

from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import HomePath, asdict, pick, refusal, rules_of, setting, settings


@settings
class Start:
    """An encoder's initial weights: a checkpoint, or random weights and a trained tokenizer."""

    checkpoint: HomePath = setting(
        "",
        meaning="BERT, RoBERTa, XLM-RoBERTa, DistilBERT, MPNet, ELECTRA, MiniLM or ModernBERT in "
        "transformers format: a folder (a relative path begins at the working directory), or a "
        "name at the Hugging Face hub (name@revision for a commit, tag or branch); "
        "excludes the other keys",
        source="4.1: Shitao/RetroMAE",
    )
    collection: str = setting(
        "",
        meaning="the collection with the text that trains the tokenizer of random initial weights",
        names="collections",
    )
    vocabulary: int = setting(
        30522, unit="word-pieces", meaning="size", source="BERT base", low=100, high=2**20
    )
    layers: int = setting(12, meaning="Transformer layers", source="BERT base", low=1, high=1000)
    hidden: int = setting(
        768, unit="dimensions", meaning="width d_enc", source="BERT base", low=2, high=2**16
    )
    heads: int = setting(
        12, meaning="attention heads; a divisor of `hidden`", source="BERT base", low=1, high=1000
    )
    feedforward: int = setting(
        3072, unit="dimensions", meaning="inner width", source="BERT base", low=1, high=2**18
    )
    positions: int = setting(
        512, unit="word-pieces", meaning="longest input", source="BERT base", low=8, high=2**16
    )
    initializer: float = setting(
        0.02,
        meaning="standard deviation of the random weights",
        source="BERT base",
        above=0,
        high=10,
    )
    dropout: float = setting(
        0.1,
        meaning="share of hidden values that dropout removes in training",
        source="BERT base",
        low=0,
        high=0.9,
    )

    def __post_init__(self) -> None:
        """Refuse settings that conflict with a checkpoint, and sizes that heads cannot divide."""
        if self.checkpoint:
            for key, rule in rules_of(self).items():
                if key != "checkpoint" and getattr(self, key) != rule.default:
                    raise refusal((key,), " has no effect with a checkpoint; remove one of them")
        if self.hidden % self.heads:
            raise InputError(
                f"hidden is {self.hidden} and heads is {self.heads}; allowed: heads that divide "
                "hidden"
            )

    def values(self) -> dict[str, Any]:
        """Return the relevant settings: the checkpoint, or everything else."""
        return (
            pick(asdict(self), ["checkpoint"]) if self.checkpoint else asdict(self, ["checkpoint"])
        )

    def tokenizer(self) -> dict[str, Any]:
        """Return the settings that decide the tokenizer."""
        return pick(
            asdict(self), ("checkpoint",) if self.checkpoint else ("collection", "vocabulary")
        )

    def known_positions(self) -> int | None:
        """Return the longest input; None if only the job that loads the checkpoint knows it."""
        return pretrained.positions(self.checkpoint) if self.checkpoint else self.positions

    def positions_of(self, owner: str) -> str:
        """Describe the longest input for messages; owner: ``starts.NAME``."""
        return f"the positions of {owner}" if self.checkpoint else f"{owner}.positions"

    def known_width(self) -> int | None:
        """Return the width of a state; None if only the job that loads the checkpoint knows it."""
        if not self.checkpoint:
            return self.hidden
        return pretrained.number(self.checkpoint, "hidden_size")

    def known_layers(self) -> int | None:
        """Return the number of layers; None if only the job that loads the checkpoint knows it."""
        return (
            pretrained.number(self.checkpoint, "num_hidden_layers")
            if self.checkpoint
            else self.layers
        )
