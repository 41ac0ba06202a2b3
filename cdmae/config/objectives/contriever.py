"""Contriever: the contrast of independent crops of a passage (Izacard et al. 2022)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le

from cdmae.config.encoders import Pooled
from cdmae.errors import InputError
from cdmae.fields import Real, Share, Whole, asdict, settings

MASKS = ("encoder_masking", "encoder_ratio", "mask_share", "random_share", "sigma", "importance")


@settings
class Contriever(Pooled):
    """A contrast of crops, without masks and without a language model."""

    in_words = "with Contriever's contrast of independent crops (Izacard et al. 2022)"

    objective: Literal["contriever"] = "contriever"
    """A contrast of two parts of a passage, without masks; the negatives are the other passages of
    the batch, or a queue of earlier ones [Izacard et al. 2022].
    """
    pooling: Literal["cls", "mean"] = "mean"
    """The vector that it trains: the state of the first token, or the mean over all tokens; should
    equal the `pooling` of the retrievers that use this encoder [Contriever: --pooling average].
    """
    cut: Literal["crops", "cloze"] = "crops"
    """The two parts: two independent crops of a passage, or a crop and the rest of the passage
    (inverse cloze) [Contriever, section 3.1; cloze: Lee et al. 2019].
    """
    crop_least: Annotated[Real, Gt(0), Le(1)] = 0.05
    """Shortest crop, as a share of the passage [Contriever: --ratio_min]."""
    crop_most: Annotated[Real, Gt(0), Le(1)] = 0.5
    """Longest crop, as a share of the passage [Contriever: --ratio_max]."""
    deletion: Annotated[Real, Ge(0), Le(0.9)] = 0.1
    """Share of the tokens of a crop that are deleted [Contriever: --prob_augmentation]."""
    temperature: Annotated[Real, Ge(0.001), Le(100)] = 0.05
    """Divides the dot products of the contrast [Contriever: --temperature]."""

    queue: Annotated[Whole, Ge(0), Le(2**24)] = 0
    """Earlier passages that are the negatives, encoded by a slower copy of the encoder (MoCo); a
    multiple of `batch`; 0: the negatives are the other passages of the batch (passages)
    [Contriever: --queue_size 131072; here 0, as in its src/inbatch.py].
    """
    momentum: Share = 0.9995
    """Share of its weights that the slower copy keeps in each step [Contriever: --momentum]."""

    def __post_init__(self) -> None:
        """Refuse batches without negatives, a `crop_most` below `crop_least`, and odd queues."""
        super().__post_init__()
        if self.queue % self.batch:
            raise InputError(
                f"queue is {self.queue} and batch is {self.batch}; expected 0, or a multiple of "
                "batch, because each step replaces the oldest batch in the queue"
            )
        if self.batch < 2 and not self.queue:
            raise InputError(
                f"batch is {self.batch}; expected from 2, because the "
                "negatives are the other passages of the batch"
            )
        if self.crop_most < self.crop_least:
            raise InputError(
                f"crop_most is {self.crop_most}; expected from crop_least, {self.crop_least}, to 1"
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
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect: it masks nothing, and only a queue has a momentum."""
        own = MASKS if self.queue else (*MASKS, "momentum")
        return (*super().unread, *own)

    def values(self) -> dict[str, Any]:
        """Return all settings except the settings of masks, and of a queue that does not exist."""
        return asdict(self, MASKS if self.queue else (*MASKS, "momentum"))
