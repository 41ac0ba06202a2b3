"""BM25: the first system; its run over training queries provides the negatives of stage 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le

from cdmae.config.kinds._system import Columns, Made, System
from cdmae.fields import EMPTY, Of, Real, Share, refusal, settings

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Bm25(System):
    """BM25: ranks by the words that query and passage share."""

    lexical = True
    neural = False
    index = answered_by = "bm25"

    kind: Literal["bm25"] = "bm25"
    """The words of query and passage, by BM25 [Robertson and Zaragoza 2009]."""
    k1: Annotated[Real, Ge(0), Le(100)] = 0.9
    """Saturation of term counts [Anserini]."""
    b: Share = 0.4
    """Normalisation by length [Anserini]."""

    passages: Annotated[dict[str, str], Of("collections")] = EMPTY
    """For some collections, another one whose passages are indexed instead: source `expanded` of
    the same collection [docT5query, Nogueira and Lin 2019].
    """

    def indexed(self, collection: str) -> str:
        """Return the collection whose passages are indexed for the queries of a collection."""
        return self.passages.get(collection, collection)

    def check(self, config: Config, name: str) -> None:
        """Refuse other passages than expanded ones of the same collection."""
        for collection, other in self.passages.items():
            own = config.collections[collection].settings
            expanded = config.collections.get(other)
            if expanded is None or expanded.source != "expanded" or expanded.settings.base != own:
                words = f" is {other}; expected a collection of source expanded, whose `of` equals"
                raise refusal(("passages", collection), f"{words} collections.{collection}")

    def files(self, config: Config, name: str, made: Made) -> Columns:
        """Return the folder of its index."""
        return {"index": made("bm25")}
