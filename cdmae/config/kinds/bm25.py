"""BM25: the first system, whose run over training queries gives stage 1 its negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config.kinds._system import Columns, Made, Part, System
from cdmae.fields import setting, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Bm25(System):
    """Words that queries and passages share, by BM25."""

    compared = True
    index = "bm25"

    kind: Literal["bm25"] = setting(
        "bm25", meaning="words, by BM25", source="Robertson and Zaragoza 2009"
    )
    k1: float = setting(
        0.9, meaning="saturation of term counts", source="Anserini", low=0, high=100
    )
    b: float = setting(0.4, meaning="normalisation by length", source="Anserini", low=0, high=1)

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Return its settings and its index."""
        return self.values() | {"index": made("bm25", asked=True)}
