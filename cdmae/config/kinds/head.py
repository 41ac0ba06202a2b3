"""One head of a unified retriever, which is searched alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cdmae.config.kinds._system import (
    Engine,
    System,
    check_searched,
    check_vectors,
)
from cdmae.fields import Name, Of, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Head(System):
    """The dense or the sparse head of a unified retriever."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "vectors"

    kind: Literal["head"] = "head"
    """One head of a retriever with head unified, searched alone; nothing is trained or encoded
    again [UnifieR, KDD 2023].
    """
    of: Annotated[Name, Of("systems")]
    """The retriever with head unified."""
    uses: Literal["dense", "sparse"]
    """The head to search with."""
    engine: Engine = "exact"

    def columns(self, config: Config, name: str) -> dict[str, Any]:
        """Return the tokenizer of the trained system's encoder."""
        owner = config.systems[self.of]
        return {"start": config.encoders[owner.encoder].start}

    def check(self, config: Config, name: str) -> None:
        """Refuse a system without two heads, and Lucene for the dense head."""
        check_vectors(self, "of", config, "unified", "a retriever with head unified")
        check_searched(self, config)

    def vectors(self, config: Config) -> str:
        """Return the head that it uses."""
        return self.uses
