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
    spans = 2

    objective: Literal["contriever"] = setting(
        "contriever",
        meaning="a contrast of independent crops of a passage, without masks; the negatives are "
        "the other passages of the batch",
        source="Izacard et al. 2022",
    )
    pooling: Literal["cls", "mean"] = setting(
        "mean",
        meaning="the vector that it trains: the state of the first token, or the mean over all "
        "tokens; should equal the `pooling` of the retrievers that use this encoder",
        source="Contriever: --pooling average",
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

    def __post_init__(self) -> None:
        """Refuse batches without negatives, and a `crop_most` below `crop_least`."""
        super().__post_init__()
        if self.batch < 2:
            raise InputError(
                f"batch is {self.batch}; allowed with objective contriever: from 2, because the "
                "negatives are the other passages of the batch"
            )
        if self.crop_most < self.crop_least:
            raise InputError(
                f"crop_most is {self.crop_most}; allowed: from crop_least, {self.crop_least}, to 1"
            )

    @property
    def maskings(self) -> tuple[str, ...]:
        """Return no masking: every token is visible."""
        return ()

    @property
    def unread(self) -> dict[str, str]:
        """Map the settings without effect to reasons."""
        return super().unread | dict.fromkeys(MASKS, "objective contriever masks nothing")

    def values(self) -> dict[str, Any]:
        """Return all settings except the settings of masks."""
        return asdict(self, MASKS)

    def read_tokens(self, corpus: Any) -> float:
        """Return a crop's mean number of tokens, before deletions.

        corpus: the size of the corpus, a `cdmae.plan.sizes.Size`.
        """
        special = 2
        share = (self.crop_least + self.crop_most) / 2
        return special + share * (corpus.tokens(self.max_length) - special)

    def predicted(self, tokens: float) -> float:
        """Return 0: there is no language-model head."""
        return 0.0

    def further_flops(self, network: Any, tokens: float) -> float:
        """Count the second computation of the vectors, which gradient caching needs."""
        return network.forward(tokens)
