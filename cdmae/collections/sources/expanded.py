"""Append texts that another model wrote, such as docT5query's queries, to a collection's passages.

A file has a line per text: passage id, tab, text. Its lines are in the order of the passages, and
every passage has at least one. It is the user's, or the rule `texts` writes it by a
sequence-to-sequence model (`cdmae.retrieval.expansion`). Passages are numbered as in the other
collection, so that a system of kind `bm25` can index these passages (`passages`) and answer the
other collection's queries (Nogueira and Lin 2019, "From doc2query to docTTTTTquery").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Le

from cdmae.collections import Derived, Nested, tables
from cdmae.collections.folders import table_at
from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import HomePath, Natural, Positive, Whole, settings, show
from cdmae.terminal import printable

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

WORDS = 6.0  # mean words of a written text, for the plan: a query of MS MARCO has six


@settings
class Settings(Derived):
    """Passages with appended texts [docT5query]."""

    of: Nested
    """Collection to expand, as in `collections`."""
    texts: HomePath = ""
    """File with lines of passage id, tab, text, in the order of the passages."""
    model: HomePath = ""
    """Instead of `texts`: a sequence-to-sequence model's folder, or name at the hub."""
    samples: Annotated[Whole, Ge(1), Le(1000)] = 40
    """Texts per passage."""
    text_length: Annotated[Whole, Ge(2), Le(10_000)] = 64
    """Longest text (word-pieces)."""
    passage_length: Annotated[Whole, Ge(2), Le(100_000)] = 512
    """Longest passage (word-pieces)."""
    top_k: Positive = 10
    """Draws each word-piece among so many most probable ones."""
    prompt: str = ""
    """Text before each passage, such as "text2query: "."""
    seed: Natural = 0
    """Seed of the model's draws."""

    def __post_init__(self) -> None:
        """Refuse a missing file, an unfit model, and a config with both or neither."""
        if bool(self.texts) == bool(self.model):
            raise InputError(
                f"texts is {show(self.texts)}, and model is {show(self.model)}; expected one of "
                "them: a file of texts, or a model that writes them"
            )
        if self.model:
            pretrained.check(self.model, ("model",))
        else:
            table_at(self.texts, "texts")

    @property
    def writer(self) -> str:  # type: ignore[override]
        """Return the model that writes the texts; empty if they are in a file."""
        return self.model

    def depends(self) -> list[Path]:
        """List the files of the collection, and the file of texts."""
        return [*super().depends(), *([Path(self.texts)] if self.texts else [])]

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Estimate as for the collection, and add the words of `samples` texts per passage."""
        passages, words, queries = self.base.expected()
        return passages, words + self.samples * WORDS, queries

    def read(self) -> Collection:
        """Load the collection, and expand its passages."""
        from cdmae.collections.store import table_of

        collection = self.base.load()
        about = {"source": "expanded", "of": collection.about}
        return replace(collection, passages=table_of(self._rows(collection)), about=about)

    def _rows(self, collection: Collection) -> Iterator[tuple[str, str, str]]:
        """Yield each passage with its texts, which are read at the same time."""
        lines = tables.texts(Path(self.texts))
        end = (0, ("", ""))
        number, (owner, text) = next(lines, end)
        for passage_id, title, own in collection.rows():
            texts = [own]
            while number and owner == passage_id:
                texts.append(text)
                number, (owner, text) = next(lines, end)
            if len(texts) == 1:
                found = f"line {number}: a text of {printable(owner)}" if number else "the end"
                raise InputError(
                    f"{self.texts}, {found}; expected a text of {printable(passage_id)}, the "
                    "next passage of the collection"
                )
            yield passage_id, title, " ".join(texts)
        if number:
            raise InputError(
                f"{self.texts}, line {number}: a text of {printable(owner)}; expected the end, "
                "because all passages of the collection have their texts"
            )
