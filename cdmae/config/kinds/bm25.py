"""BM25: the first system; its run over training queries provides the negatives of stage 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le

from cdmae.config.kinds._system import Columns, Made, Part, System
from cdmae.fields import EMPTY, Of, Real, Share, refusal, settings, suggestion

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
    """For each collection, another one whose passages are indexed instead: source `expanded` of the
    same collection; empty: every collection's own [docT5query, Nogueira and Lin 2019].
    """

    def indexed(self, collection: str) -> str:
        """Return the collection whose passages are indexed for the queries of a collection."""
        return self.passages.get(collection, collection)

    def check(self, config: Config, name: str) -> None:
        """Refuse other passages than expanded ones of the same collection, and missing ones."""
        for collection, other in self.passages.items():
            expanded = config.collections.get(other)
            if expanded is None:
                words = f" is {other}, which is not in collections; "
                raise refusal(
                    ("passages", collection), words + suggestion(other, config.collections)
                )
            own = config.collections[collection].settings
            if expanded.source != "expanded" or expanded.settings.base != own:
                words = (
                    f" is {other}, which does not expand the passages of {collection}; expected a "
                    f"collection with source expanded, whose `of` equals collections.{collection}"
                )
                raise refusal(("passages", collection), words)
        for collection in config.evaluation.collections:
            self.check_mined(config, collection, "")

    def check_mined(self, config: Config, collection: str, split: str) -> None:
        """Refuse to search a collection that is not expanded, if others are."""
        if self.passages and collection not in self.passages:
            words = (
                f" lacks {collection}, which is searched; expected an expanded collection for each "
                "collection"
            )
            raise refusal(("passages",), words)

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Add the folder of its index."""
        return super().asked(config, name, made, part) | {"index": made("bm25", asked=True)}

    def in_words(self) -> str:
        """Describe BM25 by its constants k1 and b."""
        expanded = ", expanded passages" if self.passages else ""
        return f"BM25, k1 {self.k1}, b {self.b}{expanded}"
