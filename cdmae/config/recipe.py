"""The settings that all stages of supervised training share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cdmae.config import checks
from cdmae.errors import InputError
from cdmae.fields import Name, asdict, pick, setting, settings

if TYPE_CHECKING:
    from cdmae.config.starts import Start

# settings without an effect on a system that has no teacher
OF_A_TEACHER = (
    "distillation",
    "alpha",
    "teacher_temperature",
    "denoise",
    "labels",
    "margin_bins",
    "weaker_teacher",
)


@settings
class Stage:
    """A recipe of supervised training; systems set the encoder, the negatives and the teacher."""

    lengths = ()  # the settings at which texts are cut
    topics = 0  # a setting of the dense head
    labels = 0.0  # a setting of retrievers
    target = "ranking"  # a setting of the sparse head

    collection: Name = setting(
        meaning="the collection with the training queries, judgments and passages",
        names="collections",
    )
    split: str = setting("train", meaning="the split of the training queries")
    train_queries: int = setting(
        0,
        unit="queries",
        meaning="number of training queries to use, chosen by a stable hash: a smaller number "
        "chooses some of the queries of a larger number; 0: all",
        low=0,
    )
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
    precision: Literal["auto", "fp32", "bf16", "fp16"] = setting(
        "auto",
        meaning="auto: bf16 on GPUs and CPUs (AVX512-BF16) that support it, fp16 with a scaled "
        "loss on other GPUs with tensor cores (V100, T4), fp32 elsewhere",
    )
    alpha: float = setting(
        0.2,
        meaning="weight of the contrastive loss in training with a teacher",
        source="4.1",
        low=0,
        high=1e6,
    )
    teacher_temperature: float = setting(
        1.0,
        meaning="divides the teacher's scores; below 1 for scores that are close to each other, "
        "such as cosines",
        source="4.1: 1; ColBERTv2 scales them, too",
        low=1e-3,
        high=1e6,
    )
    seed: int = setting(
        -1,
        meaning="seed of this entry, which is then trained once, even with several `seeds`; -1: "
        "the config's",
        low=-1,
    )

    def __post_init__(self) -> None:
        """Refuse a fractional number of steps, and steps or groups that are too large."""
        if self.warmup_steps >= 1 and self.warmup_steps % 1:
            raise InputError(
                f"warmup_steps is {self.warmup_steps}; allowed: a share below 1, or whole steps"
            )
        if 0 < self.train_queries < self.queries:
            raise InputError(
                f"train_queries is {self.train_queries} and queries is {self.queries}; allowed: "
                "at least as many training queries as a step has"
            )
        if 0 < self.train_queries < self.topics:
            raise InputError(
                f"topics is {self.topics} and train_queries is {self.train_queries}; allowed: at "
                "most as many topics as training queries"
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
            (
                "split",
                "train_queries",
                "depth",
                "group",
                "random_negatives",
                "epochs",
                "seed",
                "margin",
            ),
        )

    def model(self) -> dict[str, Any]:
        """Return the settings stored with the model: how texts are read and compared."""
        return pick(asdict(self), (*self.lengths, "precision"))

    def check_start(self, start: Start, owner: str) -> None:
        """Refuse lengths that exceed the maximum input of ``starts.NAME``, if it is known.

        start: the entry; owner: its name in messages.
        """
        lengths = {key: getattr(self, key) for key in self.lengths}
        checks.check_lengths(lengths, start.known_positions(), start.positions_of(owner))

    def values(self, *, teacher: bool = True, in_batch_teacher: bool = True) -> dict[str, Any]:
        """Return the settings that affect a training, with or without teachers."""
        without = () if teacher else OF_A_TEACHER
        return asdict(self, without if in_batch_teacher else (*without, "in_batch_weight"))
