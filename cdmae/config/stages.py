"""Stages: recipes of supervised training, with a class for each kind of model.

`cdmae.config.recipe` has the settings that all stages share, `cdmae.config.heads` the stages of
retrievers.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cdmae.config.heads import AnyRetriever
from cdmae.config.recipe import Stage
from cdmae.errors import InputError
from cdmae.fields import setting, settings


@settings
class Reranker(Stage):
    """A recipe for training rerankers."""

    lengths = ("max_length",)

    kind: Literal["reranker"] = setting(
        "reranker", meaning="a cross-encoder of query and passage", source="3.4"
    )
    max_length: int = setting(
        192, unit="word-pieces", meaning="length at which pairs are cut", source="SimLM", low=16
    )
    forward_factor: int = setting(
        4,
        meaning="gradients are computed only for the best group / forward_factor passages",
        source="SimLM",
        low=1,
    )
    rdrop: float = setting(
        1.0, meaning="weight of R-Drop; 0 is off", source="SimLM", low=0, high=1e6
    )

    def __post_init__(self) -> None:
        """Refuse a group that the factor does not divide."""
        super().__post_init__()
        if self.group % self.forward_factor or self.group // self.forward_factor < 2:
            raise InputError(
                f"group is {self.group} and forward_factor is {self.forward_factor}; allowed: a "
                "factor that divides group, with a quotient of at least 2"
            )


AnyStage = Annotated[AnyRetriever | Reranker, Field(discriminator="kind")]
