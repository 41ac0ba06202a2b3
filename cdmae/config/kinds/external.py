"""A third-party retriever, which sentence-transformers loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field

from cdmae.config import pretrained, systems
from cdmae.config.kinds._system import (
    Columns,
    Engine,
    Made,
    Part,
    System,
    check_candidates,
    check_engine,
)
from cdmae.fields import REQUIRED, HomePath, Natural, Of, Whole, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class External(System):
    """A published retriever, searched without further training."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "external"
    third_party = True

    kind: Literal["external"] = "external"
    """The vectors of a published model."""
    model: Annotated[HomePath, Field(min_length=1)] = REQUIRED
    """A retriever that sentence-transformers loads: a folder (a relative path begins at the working
    directory), or a name or name@revision at the hub.
    """
    head: Literal["auto", "dense", "sparse", "multi"] = "auto"
    """dense: one vector per text; sparse: a weight per word-piece (SPLADE, in the format of
    SparseEncoder, or a language model that is used as one); multi: a vector per word-piece
    (ColBERT, in its own format, PyLate's or MultiVectorEncoder's); auto: according to the model's
    files.
    """
    engine: Engine = "exact"
    """How sparse vectors are searched: exact, by products of vectors; lucene, in an inverted index
    that stores the weights x 100 as whole numbers.
    """
    candidates: Annotated[str, Of("systems")] = ""
    """The system whose best passages are scored, for a retriever with a vector per word-piece;
    none: all passages are, which a small collection allows [ColBERT: BM25].
    """
    candidates_depth: Annotated[Whole, Ge(1), Le(100_000)] = 1000
    """Number of the best passages of `candidates` that are scored (passages) [ColBERT: 1000]."""
    query_length: Natural = 0
    """Length at which queries are cut; 0: the model's own (word-pieces)."""
    passage_length: Natural = 0
    """Length at which passages are cut; 0: the model's own (word-pieces)."""

    query_prompt: str = ""
    """Text before each query, such as "query: "; empty: the model's own [E5, BGE]."""
    passage_prompt: str = ""
    """Text before each passage, such as "passage: "; empty: the model's own [E5, BGE]."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the candidates."""
        return [self.candidates] if self.candidates else []

    def columns(self, config: Config, name: str) -> Columns:
        """Return the files of the model."""
        return {"model_files": systems.model_files(self.model)}

    def check(self, config: Config, name: str) -> None:
        """Refuse a folder that does not contain a retriever with this head."""
        pretrained.check(self.model, ("model",), ("modules.json", "config.json"))
        check_engine(self, config)
        check_candidates(self, config)
        composed = (Path(self.model) / "modules.json").is_file()
        if self.head == "sparse" and not composed and not pretrained.has_lm_head(self.model):
            words = f", but {self.model} has no language-model head; expected auto, dense"
            raise unfit(self, "head", words)
        if self.head == "sparse" and composed and not pretrained.is_sparse_encoder(self.model):
            # sentence-transformers would add a sparse module with random weights
            words = f", but the modules of {self.model} make dense vectors; expected auto, dense"
            raise unfit(self, "head", words)
        if self.head == "multi" and not pretrained.is_multi_encoder(self.model):
            # sentence-transformers would add a projection with random weights
            words = f", but {self.model} makes one vector per text; expected auto, dense"
            raise unfit(self, "head", words)

    def is_sparse(self, config: Config) -> bool:
        """Return whether the model is sparse; for a model at the hub only `head` can tell."""
        if self.head == "auto":
            return pretrained.is_sparse_encoder(self.model)
        return self.head == "sparse"

    def is_multi(self, config: Config) -> bool:
        """Return whether the model has many vectors per text, determined as in `is_sparse`."""
        if self.head == "auto":
            return Path(self.model).is_dir() and pretrained.is_multi_encoder(self.model)
        return self.head == "multi"

    def positions(self, config: Config) -> int | None:
        """Return the longest input of the model."""
        return pretrained.positions(self.model)

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Add the folder that contains the vectors of the passages."""
        vectors = made("vectors", asked=not config.evaluation.keep_vectors)
        return super().asked(config, name, made, part) | {"vectors": vectors}

    def in_words(self) -> str:
        """Describe the system by its model."""
        best = f", orders the best {self.candidates_depth} of {self.candidates}"
        return f"published retriever {self.model}{best if self.candidates else ''}"
