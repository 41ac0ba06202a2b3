"""Vector pseudo-relevance feedback: a dense system searches again with a refined query vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cdmae.config import systems
from cdmae.config.kinds._system import System, check_vectors
from cdmae.fields import Name, Of, Positive, Weight, pick, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config

# settings of systems that encode queries
OF_QUERIES = ("model", "head", "query_length", "query_prompt", "uses")


@settings
class Feedback(System):
    """A dense system with Rocchio's feedback from its best passages."""

    answered_by = "feedback"

    kind: Literal["feedback"] = "feedback"
    """A dense system that searches again: each query vector moves towards the vectors of its best
    passages [Li et al. 2021, arXiv 2108.11044].
    """
    of: Annotated[Name, Of("systems")]
    """The dense system that searches twice."""
    depth: Positive = 3
    """Number of best passages of the first search; their mean is the feedback (passages)
    [Pyserini].
    """
    alpha: Weight = 0.9
    """Weight of the query's vector [Pyserini]."""
    beta: Weight = 0.1
    """Weight of the passages' mean vector [Pyserini]."""

    def parts(self) -> list[str]:
        """Return the name of the system that searches first."""
        return [self.of]

    def columns(self, config: Config, name: str) -> dict[str, Any]:
        """Return the dense system's model: a trained folder, or the files of an external model.

        encoder: the dense system's settings that affect the vectors of queries.
        """
        dense = config.systems[self.of]
        encoder = {"encoded_by": dense.encoded_by, **pick(dense.values(), OF_QUERIES)}
        files = dense.columns(config, self.of).get("model_files", [])
        return {
            "encoder": encoder,
            "trained": systems.model_of(config, self.of),
            "model_files": files,
        }

    def check(self, config: Config, name: str) -> None:
        """Refuse a system without dense vectors."""
        check_vectors(self, "of", config, "dense", "a dense system")
