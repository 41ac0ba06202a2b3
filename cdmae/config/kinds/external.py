"""A third-party retriever, which sentence-transformers loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cdmae.config import pretrained, systems
from cdmae.config.kinds._system import (
    CANDIDATES,
    CANDIDATES_DEPTH,
    ENGINE,
    Columns,
    Engine,
    Made,
    Part,
    System,
    check_candidates,
    check_engine,
)
from cdmae.fields import HomePath, setting, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class External(System):
    """A published retriever, searched without further training."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "external"
    third_party = True

    kind: Literal["external"] = setting("external", meaning="the vectors of a published model")
    model: Annotated[HomePath, Field(min_length=1)] = setting(
        meaning="a retriever that sentence-transformers loads: a folder (a relative path begins "
        "at the working directory), or a name or name@revision at the hub"
    )
    head: Literal["auto", "dense", "sparse", "multi"] = setting(
        "auto",
        meaning="dense: one vector per text; sparse: a weight per word-piece (SPLADE, in the "
        "format of SparseEncoder, or a language model that is used as one); multi: a vector per "
        "word-piece (ColBERT, in its own format, PyLate's or MultiVectorEncoder's); auto: "
        "according to the model's files",
    )
    engine: Engine = setting("exact", meaning=ENGINE)
    candidates: str = setting("", meaning=CANDIDATES, source="ColBERT: BM25", names="systems")
    candidates_depth: int = setting(
        1000,
        unit="passages",
        meaning=CANDIDATES_DEPTH,
        source="ColBERT: 1000",
        low=1,
        high=100_000,
    )
    query_length: int = setting(
        0, unit="word-pieces", meaning="length at which queries are cut; 0: the model's own", low=0
    )
    passage_length: int = setting(
        0, unit="word-pieces", meaning="length at which passages are cut; 0: the model's own", low=0
    )

    query_prompt: str = setting(
        "",
        meaning='text before each query, such as "query: "; empty: the model\'s own',
        source="E5, BGE",
    )
    passage_prompt: str = setting(
        "",
        meaning='text before each passage, such as "passage: "; empty: the model\'s own',
        source="E5, BGE",
    )

    def parts(self) -> list[str]:
        """Return the name of the system that provides the candidates."""
        return [self.candidates] if self.candidates else []

    def columns(self, config: Config, name: str) -> Columns:
        """Return the files of the model."""
        return {"model_files": systems.model_files(self.model)}

    def check(self, config: Config, name: str) -> None:
        """Refuse a folder that does not contain a retriever with this head."""
        pretrained.check_retriever(self.model, ("model",))
        check_engine(self, config)
        check_candidates(self, config)
        composed = (Path(self.model) / "modules.json").is_file()
        if self.head == "sparse" and not composed and not pretrained.has_lm_head(self.model):
            words = f", but {self.model} has no language-model head; allowed: auto, dense"
            raise unfit(self, "head", words)
        if self.head == "sparse" and composed and not pretrained.is_sparse_encoder(self.model):
            # sentence-transformers would add a sparse module with random weights
            words = f", but the modules of {self.model} make dense vectors; allowed: auto, dense"
            raise unfit(self, "head", words)
        if self.head == "multi" and not pretrained.is_multi_encoder(self.model):
            # sentence-transformers would add a projection with random weights
            words = f", but {self.model} makes one vector per text; allowed: auto, dense"
            raise unfit(self, "head", words)
        if self.query_length and self.is_multi(config):
            filled = pretrained.query_length(self.model)
            if filled and self.query_length > filled:
                words = f"; allowed: up to {filled}, to which {self.model} fills its queries; or 0"
                raise unfit(self, "query_length", words)

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
