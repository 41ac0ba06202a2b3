"""Settings of initial weights, with which an encoder's pre-training begins."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import HomePath, Of, Real, Whole, asdict, pick, rules_of, settings


@settings
class Start:
    """An encoder's initial weights: a checkpoint, or random weights and a trained tokenizer."""

    checkpoint: HomePath = ""
    """BERT, RoBERTa, XLM-RoBERTa, DistilBERT, MPNet, ELECTRA, MiniLM, ModernBERT, NomicBERT or GTE
    in transformers format: a folder (a relative path begins at the working directory), or a name
    at the Hugging Face hub (name@revision for a commit, tag or branch); excludes the other keys
    [4.1: Shitao/RetroMAE].
    """
    collection: Annotated[str, Of("collections")] = ""
    """The collection with the text that trains the tokenizer of random initial weights."""
    vocabulary: Annotated[Whole, Ge(100), Le(2**20)] = 30522
    """Size (word-pieces) [BERT base]."""
    layers: Annotated[Whole, Ge(1), Le(1000)] = 12
    """Transformer layers [BERT base]."""
    hidden: Annotated[Whole, Ge(2), Le(2**16)] = 768
    """Width d_enc (dimensions) [BERT base]."""
    heads: Annotated[Whole, Ge(1), Le(1000)] = 12
    """Attention heads; a divisor of `hidden` [BERT base]."""
    feedforward: Annotated[Whole, Ge(1), Le(2**18)] = 3072
    """Inner width (dimensions) [BERT base]."""
    positions: Annotated[Whole, Ge(8), Le(2**16)] = 512
    """Longest input (word-pieces) [BERT base]."""
    initializer: Annotated[Real, Gt(0), Le(10)] = 0.02
    """Standard deviation of the random weights [BERT base]."""
    dropout: Annotated[Real, Ge(0), Le(0.9)] = 0.1
    """Share of hidden values that dropout removes in training [BERT base]."""

    def __post_init__(self) -> None:
        """Refuse sizes that heads cannot divide."""
        if not self.checkpoint and self.hidden % self.heads:
            raise InputError(
                f"hidden is {self.hidden} and heads is {self.heads}; expected heads that divide "
                "hidden"
            )

    @property
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect: with a checkpoint, all others."""
        return tuple(key for key in rules_of(self) if self.checkpoint and key != "checkpoint")

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
