"""Vector pseudo-relevance feedback: a dense system searches again with a refined query vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le

from cdmae.config.kinds._system import Columns, System, check_depth, check_fits
from cdmae.errors import InputError
from cdmae.fields import Name, Of, Weight, Whole, pick, refusal, settings

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
    depth: Annotated[Whole, Ge(1), Le(1000)] = 3
    """Number of best passages of the first search; their mean is the feedback (passages)
    [Pyserini].
    """
    alpha: Weight = 0.9
    """Weight of the query's vector [Pyserini]."""
    beta: Weight = 0.1
    """Weight of the passages' mean vector [Pyserini]."""

    def __post_init__(self) -> None:
        """Refuse settings in which both weights are 0."""
        if not self.alpha and not self.beta:
            raise InputError("alpha is 0 and beta is 0; expected one of them above 0")

    def parts(self) -> list[str]:
        """Return the name of the system that searches first."""
        return [self.of]

    def columns(self, config: Config, name: str) -> Columns:
        """Return the dense system's model: a trained folder, or the files of an external model.

        encoder: the dense system's settings that affect the vectors of queries.
        """
        dense = config.systems[self.of]
        encoder = {"encoded_by": dense.encoded_by, **pick(dense.values(), OF_QUERIES)}
        files = dense.columns(config, self.of).get("model_files", [])
        return {
            "encoder": encoder,
            "trained": dense.model_of(config, self.of),
            "model_files": files,
        }

    def check(self, config: Config, name: str) -> None:
        """Refuse a system without dense vectors, vectors that are not kept, and a large depth."""
        dense = "a dense system"
        check_fits(
            self, "of", config.systems, lambda entry: entry.vectors(config) == "dense", dense
        )
        if not config.evaluation.keep_vectors:
            words = " needs evaluation.keep_vectors, which is false; expected true, or remove it"
            raise refusal(("kind",), words)
        check_depth(self, "depth", config)

    def model_of(self, config: Config, name: str) -> str:
        """Return the system with the dense system's trained model."""
        return config.systems[self.of].model_of(config, self.of)
