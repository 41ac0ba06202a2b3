"""A reranker: a cross-encoder, trained by a stage, that reorders another system's best passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cdmae.config.kinds._system import Trained
from cdmae.fields import Name, Of, Positive, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Reranker(Trained):
    """A cross-encoder that reorders another system's best passages."""

    searches = False
    scores_draws = True
    answered_by = "reranking"

    kind: Literal["reranker"] = "reranker"
    """A cross-encoder that a stage trains, on the best passages of another system."""
    reranks: Annotated[Name, Of("systems")]
    """The system whose run it reorders."""
    depth: Positive = 100
    """Number of the best passages that it reads from the run (passages)."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the run to reorder."""
        return [self.reranks]

    def check(self, config: Config, name: str) -> None:
        """Refuse a depth above the length of a run."""
        super().check(config, name)
        most = config.evaluation.depth
        if self.depth > most:
            raise unfit(self, "depth", f"; expected up to evaluation.depth, {most}")
