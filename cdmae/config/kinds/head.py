"""One head of a unified retriever, which is searched alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cdmae.config.kinds._system import (
    Columns,
    Engine,
    Made,
    System,
    check_fits,
    check_searched,
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
    """One head of a retriever with head unified, searched alone; nothing is trained
    again [UnifieR, KDD 2023].
    """
    of: Annotated[Name, Of("systems")]
    """The retriever with head unified."""
    uses: Literal["dense", "sparse"]
    """The head to search with."""
    engine: Engine = "exact"

    def columns(self, config: Config, name: str) -> Columns:
        """Return the tokenizer of the trained system's encoder."""
        owner = config.systems[self.of]
        return {"start": config.encoders[owner.encoder].start}

    def check(self, config: Config, name: str) -> None:
        """Refuse a system without two heads, and Lucene for the dense head."""
        unified = "a retriever with head unified"
        entries = config.systems
        check_fits(self, "of", entries, lambda entry: entry.vectors(config) == "unified", unified)
        check_searched(self, config)

    def model_of(self, config: Config, name: str) -> str:
        """Return the unified retriever."""
        return self.of

    def vectors(self, config: Config) -> str:
        """Return the head that it uses."""
        return self.uses

    def files(self, config: Config, name: str, made: Made) -> Columns:
        """Return the folders of the unified retriever's model and of this head's vectors."""
        return {"model": made("trained", system=self.of), "vectors": made("vectors")}
