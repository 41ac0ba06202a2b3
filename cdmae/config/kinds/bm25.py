"""BM25: the first system; its run over training queries provides the negatives of stage 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config.kinds._system import Columns, Made, Part, System
from cdmae.fields import setting, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Bm25(System):
    """BM25: ranks by the words that query and passage share."""

    lexical = True
    neural = False
    index = answered_by = "bm25"

    kind: Literal["bm25"] = setting(
        "bm25",
        meaning="the words of query and passage, by BM25",
        source="Robertson and Zaragoza 2009",
    )
    k1: float = setting(
        0.9, meaning="saturation of term counts", source="Anserini", low=0, high=100
    )
    b: float = setting(0.4, meaning="normalisation by length", source="Anserini", low=0, high=1)

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Add the folder of its index."""
        return super().asked(config, name, made, part) | {"index": made("bm25", asked=True)}

    def in_words(self) -> str:
        """Describe BM25 by its constants k1 and b."""
        return f"BM25, k1 {self.k1}, b {self.b}"
