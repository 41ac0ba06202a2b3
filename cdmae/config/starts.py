"""Settings of initial weights, with which an encoder's pre-training begins."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge

from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import (
    Entry,
    HomePath,
    Length,
    Of,
    Positive,
    PositiveReal,
    Share,
    Whole,
    pick,
    rules_of,
    settings,
    unfit,
)


@settings
class Start(Entry):
    """An encoder's initial weights: a checkpoint, or random weights of BERT base's sizes."""

    checkpoint: HomePath = ""
    """Instead of all other keys: folder, or name or name@revision at the Hugging Face hub, of a
    BERT, RoBERTa, XLM-RoBERTa, DistilBERT, MPNet, ELECTRA, MiniLM, ModernBERT, NomicBERT or GTE
    [4.1: Shitao/RetroMAE].
    """
    collection: Annotated[str, Of("collections")] = ""
    """Collection of the tokenizer."""
    vocabulary: Annotated[Whole, Ge(100)] = 30522
    """Word-pieces."""
    strip_accents: bool = True
    """Ignore accents of Latin letters."""
    layers: Positive = 12
    """Transformer layers."""
    hidden: Annotated[Whole, Ge(2)] = 768
    """Width of a state, d_enc."""
    heads: Positive = 12
    """Attention heads."""
    feedforward: Positive = 3072
    """Width of feed-forward layers."""
    positions: Length = 512
    """Longest input (word-pieces)."""
    initializer: PositiveReal = 0.02
    """Standard deviation of random weights."""
    dropout: Share = 0.1
    """Dropout of hidden values."""

    def __post_init__(self) -> None:
        """Refuse sizes that heads cannot divide, and a tokenizer without a text."""
        if self.checkpoint:
            return
        if not self.collection:
            words = " is empty, and so is collection; expected one of them"
            raise InputError(words, keys=("checkpoint",))
        if self.hidden % self.heads:
            raise unfit(self, "heads", f"; expected a divisor of hidden, which is {self.hidden}")

    @property
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect: with a checkpoint, all others; else the checkpoint."""
        has_checkpoint = bool(self.checkpoint)
        return tuple(key for key in rules_of(self) if (key == "checkpoint") != has_checkpoint)

    def tokenizer(self) -> dict[str, Any]:
        """Return the settings that decide the tokenizer."""
        keys = ("checkpoint", "collection", "vocabulary", "strip_accents")
        return pick(self.values(), keys)

    # --- sizes; None if only the job that loads the checkpoint knows them -------------------------

    def known_positions(self) -> int | None:
        """Return the longest input."""
        return None if self.checkpoint else self.positions

    def known_width(self) -> int | None:
        """Return the width of a state."""
        if self.checkpoint:
            return pretrained.number(self.checkpoint, "hidden_size")
        return self.hidden
