"""A reranker: a cross-encoder, trained by a stage, that reorders another system's best passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le

from cdmae.config.kinds._system import Columns, Made, Trained, check_depth
from cdmae.fields import Name, Of, Whole, settings

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
    depth: Annotated[Whole, Ge(1), Le(100_000)] = 100
    """Number of the best passages that it reads from the run (passages)."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the run to reorder."""
        return [self.reranks]

    def check(self, config: Config, name: str) -> None:
        """Refuse a depth above the length of a run."""
        super().check(config, name)
        check_depth(self, "depth", config)

    def files(self, config: Config, name: str, made: Made) -> Columns:
        """Return the folders of its model and of the collection's tokens."""
        tokens = made("tokens", start=config.encoders[self.encoder].start)
        return {"model": made("trained"), "tokens": tokens}
