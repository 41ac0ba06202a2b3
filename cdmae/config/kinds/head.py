"""One head of a unified retriever, which is searched alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cdmae.config import systems
from cdmae.config.kinds._system import (
    Columns,
    Engine,
    Made,
    Part,
    System,
    check_engine,
    check_kind,
)
from cdmae.fields import Name, Of, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Head(System):
    """The dense or the sparse head of a unified retriever."""

    compared = True
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
    """How sparse vectors are searched: exact, by products of vectors; lucene, in an inverted index
    that stores the weights x 100 as whole numbers.
    """

    def columns(self, config: Config, name: str) -> Columns:
        """Return the trained system, and the tokenizer of its encoder."""
        owner = config.systems[self.of]
        return {"folder": self.of, "start": config.encoders[owner.encoder].start}

    def check(self, config: Config, name: str) -> None:
        """Refuse a system without two heads."""
        unified = "a retriever with head unified"
        check_kind(self, "of", config.systems, lambda system: system.is_unified(config), unified)
        check_engine(self, config)

    def model_of(self, config: Config, name: str) -> str:
        """Return the unified retriever."""
        return self.of

    def is_dense(self, config: Config) -> bool:
        """Return whether it uses the dense head."""
        return self.uses == "dense"

    def is_sparse(self, config: Config) -> bool:
        """Return whether it uses the sparse head."""
        return self.uses == "sparse"

    def positions(self, config: Config) -> int | None:
        """Return the longest input of the unified retriever."""
        return config.systems[self.of].positions(config)

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Add the folders of the unified retriever's model and of this head's vectors."""
        model = made("trained", system=self.of)
        vectors = made("vectors", asked=not systems.keeps_vectors(config, name))
        return super().asked(config, name, made, part) | {"model": model, "vectors": vectors}

    def in_words(self) -> str:
        """Name the head and the retriever."""
        return f"{self.uses} head of {self.of}"
