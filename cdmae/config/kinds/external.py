"""A third-party retriever, which sentence-transformers loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cdmae.config import pretrained, systems
from cdmae.config.kinds._system import Columns, Engine, Made, Searched, check_searched
from cdmae.fields import REQUIRED, HomePath, Natural, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class External(Searched):
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
    query_length: Natural = 0
    """Length at which queries are cut; 0: the model's own (word-pieces)."""
    passage_length: Natural = 0
    """Length at which passages are cut; 0: the model's own (word-pieces)."""
    query_prompt: str = ""
    """Text before each query, such as "query: "; empty: the model's own [E5, BGE]."""
    passage_prompt: str = ""
    """Text before each passage, such as "passage: "; empty: the model's own [E5, BGE]."""

    def columns(self, config: Config, name: str) -> Columns:
        """Return the files of the model."""
        return {"model_files": systems.model_files(self.model)}

    def check(self, config: Config, name: str) -> None:
        """Refuse a folder without a model, and a search that does not fit its vectors."""
        pretrained.check(self.model, ("model",), ("modules.json", "config.json"))
        check_searched(self, config)

    def vectors(self, config: Config) -> str:
        """Return the kind of its vectors; for a model at the hub only `head` can tell."""
        if self.head != "auto":
            return self.head
        if pretrained.is_sparse_encoder(self.model):
            return "sparse"
        return "multi" if pretrained.is_multi_encoder(self.model) else "dense"

    def files(self, config: Config, name: str, made: Made) -> Columns:
        """Return the folder that contains the vectors of the passages."""
        return {"vectors": made("vectors")}
