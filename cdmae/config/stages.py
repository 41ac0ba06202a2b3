"""Stages: recipes of supervised training, with a class for each kind of model.

`cdmae.config.recipe` has the settings that all stages share, `cdmae.config.heads` the stages of
retrievers.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cdmae.config.heads import AnyRetriever
from cdmae.config.recipe import Stage
from cdmae.fields import Length, Positive, Weight, settings, unfit


@settings
class Reranker(Stage):
    """A cross-encoder of query and passage [3.4]."""

    lengths = ("max_length",)

    kind: Literal["reranker"] = "reranker"
    max_length: Length = 192
    """Longest query with its passage (word-pieces) [SimLM]."""
    forward_factor: Positive = 4
    """Only the best group / forward_factor passages have gradients [SimLM]."""
    rdrop: Weight = 1.0
    """Weight of R-Drop [SimLM]."""

    def __post_init__(self) -> None:
        """Refuse a group that the factor does not divide."""
        if self.group % self.forward_factor or self.group // self.forward_factor < 2:
            words = f"; expected a divisor of group, {self.group}, with a quotient of at least 2"
            raise unfit(self, "forward_factor", words)


AnyStage = Annotated[AnyRetriever | Reranker, Field(discriminator="kind")]
