"""BM25: the first system; its run over training queries provides the negatives of stage 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config.kinds._system import Columns, Made, Part, System
from cdmae.fields import refusal, setting, settings, suggestion

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

    passages: dict[str, str] = setting(
        {},
        meaning="for each collection, another one whose passages are indexed instead: source "
        "`expanded` of the same collection; empty: every collection's own",
        source="docT5query, Nogueira and Lin 2019",
        names="collections",
    )

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
                    f" is {other}, which does not expand the passages of {collection}; allowed: a "
                    f"collection with source expanded, whose `of` equals collections.{collection}"
                )
                raise refusal(("passages", collection), words)
        for collection in config.evaluation.collections:
            self.check_mined(config, collection, "")

    def check_mined(self, config: Config, collection: str, split: str) -> None:
        """Refuse to search a collection that is not expanded, if others are."""
        if self.passages and collection not in self.passages:
            words = (
                f" lacks {collection}, which is searched; allowed: an expanded collection for each "
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
