"""The settings that all stages of supervised training share."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge

from cdmae.fields import (
    Name,
    Natural,
    Of,
    Positive,
    PositiveReal,
    Precision,
    Rate,
    Seed,
    Weight,
    Whole,
    asdict,
    pick,
    settings,
)

# settings without an effect on a system that has no teacher
OF_A_TEACHER = (
    "distillation",
    "alpha",
    "teacher_temperature",
    "denoise",
    "labels",
    "margin_bins",
)


@settings
class Stage:
    """A recipe of supervised training; systems set the encoder, the negatives and the teacher."""

    unread = ()  # the settings without effect
    lengths = ()  # the settings at which texts are cut
    topics = 0  # a setting of the dense head
    labels = 0.0  # a setting of retrievers
    target = "ranking"  # a setting of the sparse head

    collection: Annotated[Name, Of("collections")]
    """Collection of the training queries."""
    split: str = "train"
    """Split of the training queries."""
    train_queries: Natural = 0
    """Number of training queries; 0: all."""
    depth: Positive = 200
    """Number of passages that give negatives [4.1; stage 1: 1000]."""
    queries: Positive = 64
    """Queries per step, on all devices [A; stage 3: 32]."""
    group: Annotated[Whole, Ge(2)] = 32
    """Passages per query, one of them relevant [A; stage 3: 64]."""
    epochs: PositiveReal = 3
    """Passes over the queries [A]."""
    learning_rate: Rate = 2e-5
    """Peak of the linear schedule [A]."""
    warmup_steps: Weight = 1000
    """Warm-up steps; below 1: a share of all [SimLM]."""
    weight_decay: Weight = 0.0
    """Weight decay of AdamW [SimLM]."""
    max_grad_norm: PositiveReal = 1.0
    """Maximum norm of gradients [SimLM]."""
    random_negatives: Natural = 10
    """Random negatives per query, besides mined ones [SimLM]."""
    chunk: Positive = 64
    """Passages per chunk of gradient caching: decides memory and rounding."""
    precision: Precision = "auto"
    alpha: Weight = 0.2
    """Weight of the contrastive loss next to a teacher's [4.1]."""
    teacher_temperature: PositiveReal = 1.0
    """Divides the teacher's scores; below 1 for cosines [4.1]."""
    seed: Seed = -1

    def drawn(self) -> dict[str, Any]:
        """Return the settings that affect which candidates are drawn and scored by a teacher."""
        keys = ("split", "train_queries", "depth", "group", "random_negatives", "epochs", "seed")
        return pick(asdict(self), keys)

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model: how texts are read and compared."""
        return pick(asdict(self), (*self.lengths, "precision"))

    def values(self, *, teacher: bool = True, in_batch_teacher: bool = True) -> dict[str, Any]:
        """Return the settings that affect a training, with or without teachers."""
        without = () if teacher else OF_A_TEACHER
        return asdict(self, without if in_batch_teacher else (*without, "in_batch_weight"))
