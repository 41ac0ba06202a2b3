"""Contriever: the contrast of independent crops of a passage (Izacard et al. 2022)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le

from cdmae.config.encoders import Pooled
from cdmae.errors import InputError
from cdmae.fields import Real, asdict, settings

MASKS = ("encoder_masking", "encoder_ratio", "mask_share", "random_share", "sigma", "importance")


@settings
class Contriever(Pooled):
    """A contrast of crops, without masks and without a language model."""

    spans = 2
    in_words = "with Contriever's contrast of independent crops (Izacard et al. 2022)"

    objective: Literal["contriever"] = "contriever"
    """A contrast of two crops of a passage, without masks; the negatives are the other passages of
    the batch [Izacard et al. 2022].
    """
    pooling: Literal["cls", "mean"] = "mean"
    """The vector that it trains: the state of the first token, or the mean over all tokens; should
    equal the `pooling` of the retrievers that use this encoder [Contriever: --pooling average].
    """
    crop_least: Annotated[Real, Gt(0), Le(1)] = 0.05
    """Shortest crop, as a share of the passage [Contriever: --ratio_min]."""
    crop_most: Annotated[Real, Gt(0), Le(1)] = 0.5
    """Longest crop, as a share of the passage [Contriever: --ratio_max]."""
    deletion: Annotated[Real, Ge(0), Le(0.9)] = 0.1
    """Share of the tokens of a crop that are deleted [Contriever: --prob_augmentation]."""
    temperature: Annotated[Real, Ge(0.001), Le(100)] = 0.05
    """Divides the dot products of the contrast [Contriever: --temperature]."""

    def __post_init__(self) -> None:
        """Refuse batches without negatives, and a `crop_most` below `crop_least`."""
        super().__post_init__()
        if self.batch < 2:
            raise InputError(
                f"batch is {self.batch}; expected from 2, because the "
                "negatives are the other passages of the batch"
            )
        if self.crop_most < self.crop_least:
            raise InputError(
                f"crop_most is {self.crop_most}; expected from crop_least, {self.crop_least}, to 1"
            )

    @property
    def maskings(self) -> tuple[str, ...]:
        """Return no masking: every token is visible."""
        return ()

    @property
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect: it masks nothing."""
        return (*super().unread, *MASKS)

    def values(self) -> dict[str, Any]:
        """Return all settings except the settings of masks."""
        return asdict(self, MASKS)
