"""Contriever: the contrast of independent crops of a passage (Izacard et al. 2022)."""

from __future__ import annotations

from typing import Any, Literal

from cdmae.config.encoders import Pooled
from cdmae.errors import InputError
from cdmae.fields import asdict, setting, settings

MASKS = ("encoder_masking", "encoder_ratio", "mask_share", "random_share", "sigma", "importance")


@settings
class Contriever(Pooled):
    """A contrast of crops, without masks and without a language model."""

    in_words = "with Contriever's contrast of independent crops (Izacard et al. 2022)"

    objective: Literal["contriever"] = setting(
        "contriever",
        meaning="a contrast of two parts of a passage, without masks; the negatives are the other "
        "passages of the batch, or a queue of earlier ones",
        source="Izacard et al. 2022",
    )
    pooling: Literal["cls", "mean"] = setting(
        "mean",
        meaning="the vector that it trains: the state of the first token, or the mean over all "
        "tokens; should equal the `pooling` of the retrievers that use this encoder",
        source="Contriever: --pooling average",
    )
    cut: Literal["crops", "cloze"] = setting(
        "crops",
        meaning="the two parts: two independent crops of a passage, or a crop and the rest of the "
        "passage (inverse cloze)",
        source="Contriever, section 3.1; cloze: Lee et al. 2019",
    )
    crop_least: float = setting(
        0.05,
        meaning="shortest crop, as a share of the passage",
        source="Contriever: --ratio_min",
        above=0,
        high=1,
    )
    crop_most: float = setting(
        0.5,
        meaning="longest crop, as a share of the passage",
        source="Contriever: --ratio_max",
        above=0,
        high=1,
    )
    deletion: float = setting(
        0.1,
        meaning="share of the tokens of a crop that are deleted",
        source="Contriever: --prob_augmentation",
        low=0,
        high=0.9,
    )
    temperature: float = setting(
        0.05,
        meaning="divides the dot products of the contrast",
        source="Contriever: --temperature",
        low=0.001,
        high=100,
    )

    queue: int = setting(
        0,
        unit="passages",
        meaning="earlier passages that are the negatives, encoded by a slower copy of the encoder "
        "(MoCo); a multiple of `batch`; 0: the negatives are the other passages of the batch",
        source="Contriever: --queue_size 131072; here 0, as in its src/inbatch.py",
        low=0,
        high=2**24,
    )
    momentum: float = setting(
        0.9995,
        meaning="share of its weights that the slower copy keeps in each step",
        source="Contriever: --momentum",
        low=0,
        high=1,
    )

    def __post_init__(self) -> None:
        """Refuse batches without negatives, a `crop_most` below `crop_least`, and odd queues."""
        super().__post_init__()
        if self.queue % self.batch:
            raise InputError(
                f"queue is {self.queue} and batch is {self.batch}; allowed: 0, or a multiple of "
                "batch, because each step replaces the oldest batch in the queue"
            )
        if self.batch < 2 and not self.queue:
            raise InputError(
                f"batch is {self.batch}; allowed with objective contriever: from 2, because the "
                "negatives are the other passages of the batch"
            )
        if self.crop_most < self.crop_least:
            raise InputError(
                f"crop_most is {self.crop_most}; allowed: from crop_least, {self.crop_least}, to 1"
            )

    @property
    def spans(self) -> int:
        """Return the parts of a passage that the trained encoder reads; its copy reads the other.

        Without a queue it reads both.
        """
        return 1 if self.queue else 2

    @property
    def maskings(self) -> tuple[str, ...]:
        """Return no masking: every token is visible."""
        return ()

    @property
    def unread(self) -> dict[str, str]:
        """Map the settings without effect to reasons."""
        masks = dict.fromkeys(MASKS, "objective contriever masks nothing")
        momentum = {} if self.queue else {"momentum": "queue is 0"}
        return super().unread | masks | momentum

    def values(self) -> dict[str, Any]:
        """Return all settings except the settings of masks, and of a queue that does not exist."""
        return asdict(self, MASKS if self.queue else (*MASKS, "momentum"))

    def read_tokens(self, corpus: Any) -> float:
        """Return a part's mean number of tokens, before deletions.

        corpus: the size of the corpus, a `cdmae.plan.sizes.Size`.
        """
        special = 2
        share = self.cropped
        if self.cut == "cloze" and not self.queue:
            share = 0.5  # the mean of a crop and the rest
        return special + share * (corpus.tokens(self.max_length) - special)

    @property
    def cropped(self) -> float:
        """Return a crop's mean share of its passage."""
        return (self.crop_least + self.crop_most) / 2

    def predicted(self, tokens: float) -> float:
        """Return 0: there is no language-model head."""
        return 0.0

    def further_flops(self, network: Any, tokens: float) -> float:
        """Count the second computation of the vectors, which gradient caching needs.

        With a queue, count the slower copy's forward pass over the other part instead, and the
        scores of the queue, forward and backward.
        """
        if not self.queue:
            return network.forward(tokens)
        special = 2
        other = tokens
        if self.cut == "cloze":
            other = special + (1 - self.cropped) / self.cropped * (tokens - special)
        return network.forward(other) + 2 * 2 * network.width * self.queue
