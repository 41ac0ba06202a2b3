"""Make queries from unlabelled text: part of a passage becomes the query for the rest of it.

``title``
    the title is the query for the text
``first_sentence``
    the first sentence is the query for the rest of the text
``span``
    5 to 16 consecutive words are the query for the words around them: the inverse cloze task (Lee
    et al. 2019), cropping (Izacard et al. 2022)

The query's words are removed from its passage, because a retriever would otherwise learn to match
words (`cdmae.collections.sources.spans` keeps them). Passages that are too short for a query, whose
query would be code or longer than 30 words, or that share their query with an earlier passage,
serve as negatives. Searches use the original collection.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from cdmae.collections import Derived, Nested, judged
from cdmae.collections.documents import DASH, INDENT
from cdmae.errors import InputError
from cdmae.fields import Natural, settings
from cdmae.languages.scripts import first_sentence, language_of, word_spans, words

if TYPE_CHECKING:
    import pandas as pd

    from cdmae.collections.store import Collection

# the fewest and the most words of a span
SHORTEST_SPAN = 5
LONGEST_SPAN = 16
# the fewest and the most words of a query, and the fewest of the rest of its passage
LEAST_QUERY = 3
MOST_QUERY = 30
LEAST_REST = 5
LEAST_LETTERS = 0.75  # the share of letters and digits in a query that is not code
MOST_SIGNS = 0.05  # the share of characters that are frequent in code
_SIGNS = re.compile(r"[=<>{}\[\]\\|_^$&@#/~`*]")
Passage = tuple[str, str, str]  # id, title, text


@settings
class Settings(Derived):
    """Queries made from another collection's passages."""

    of: Nested
    """Collection with the text, as in `collections`."""
    method: Literal["title", "first_sentence", "span"] = "first_sentence"
    """Part of a passage that becomes its query."""
    queries: Natural = 0
    """Training queries; 0: all."""
    dev: Natural = 0
    """Dev queries."""

    def own_splits(self) -> dict[str, bool]:
        """Return ``train``, and ``dev`` if there is one; both have judgments."""
        return {"train": True, "dev": True} if self.dev else {"train": True}

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the passages, the words per passage, and the queries: up to one per passage."""
        passages, words, _ = self.base.expected()
        train = min(passages - self.dev, self.queries or passages)
        return passages, words, {"train": train, "dev": self.dev}

    def read(self) -> Collection:
        """Make the queries, and remove their words from the passages."""
        from cdmae.collections.store import table_of

        base = self.base.load()
        made = self._queries(base)
        passages = table_of(self._rest(base, asked=set(made["passage_id"])))
        about = {"source": "pseudo", "method": self.method, "of": self.of}
        return judged.collected(passages, made.assign(grade=1), self.own_splits(), about)

    def _asked(self, base: Collection) -> Iterator[tuple[Passage, Passage | None]]:
        """Yield every passage, and its query with the remaining title and text, or None."""
        language = language_of(text for _, _, text in base.rows())
        for passage in base.rows():
            yield passage, divided(*passage, self.method, language)

    def _rest(self, base: Collection, asked: set[str]) -> Iterator[Passage]:
        """Yield all passages; remove the query from each passage in `asked`."""
        for passage, parts in self._asked(base):
            name, title, text = passage
            if name in asked:
                _, title, text = parts
            if self.method == "title":
                # a query would match this passage by its identical title
                title = ""
            yield name, title, text

    def _queries(self, base: Collection) -> pd.DataFrame:
        """Return a frame (query_id, passage_id, text, split), one row per passage with a query.

        Passages are ordered by a hash of their ids. The first belong to ``dev``, the next to
        ``train``.
        """
        import numpy as np
        import pandas as pd

        passages = len(base.passages)
        asked = self._asked(base)
        asking = [(passage[0], parts[0]) for passage, parts in asked if parts]
        # passages of one file share its title
        frame = pd.DataFrame(asking, columns=["passage_id", "text"])
        frame = frame.drop_duplicates("text", ignore_index=True)
        if len(frame) <= self.dev:
            raise InputError(
                f"method is {self.method}, and dev is {self.dev:,}, but {passages:,} passages give "
                f"{len(frame):,} different queries of {LEAST_QUERY} to {MOST_QUERY} words without "
                f"code that leave {LEAST_REST} or more; another method may help: title, "
                "first_sentence, span"
            )
        frame["query_id"] = "pseudo-" + frame["passage_id"]
        if self.queries or self.dev:
            frame["order"] = frame["passage_id"].map(lambda name: hashed(f"order {name}"))
            frame = frame.sort_values("order", kind="stable")
        frame["split"] = np.where(np.arange(len(frame)) < self.dev, "dev", "train")
        most = self.dev + self.queries if self.queries else len(frame)
        return frame.head(most).sort_index()


def divided(
    name: str, title: str, text: str, method: str, language: str = "en"
) -> tuple[str, str, str] | None:
    """Divide a passage into a query and the remaining title and text.

    language: of the text, which decides where its first sentence ends. Returns None if the passage
    is too short, or if the part of it cannot be a query.
    """
    if method == "title":
        query = title
        title = ""
        rest = text
    elif method == "first_sentence":
        query = next(filter(is_query, _first_sentences(text, language)), "")
        rest = re.sub(r"\n{3,}", "\n\n", text.replace(query, "", 1)).strip()
    else:
        spans = word_spans(text)
        number = hashed(name)
        length = SHORTEST_SPAN + number % (LONGEST_SPAN - SHORTEST_SPAN + 1)
        first = (number >> 8) % max(1, len(spans) - length + 1)
        chosen = spans[first : first + length] or [(0, 0)]
        begin, end = chosen[0][0], chosen[-1][1]
        query = " ".join(text[begin:end].split())
        rest = " ".join(f"{text[:begin]} {text[end:]}".split())
    is_long_enough = is_query(query) and len(words(rest)) >= LEAST_REST
    return (query, title, rest) if is_long_enough else None


def _first_sentences(text: str, language: str) -> Iterator[str]:
    """Yield the first sentence of each paragraph that is neither code nor an item of a list."""
    for paragraph in text.strip("\n").split("\n\n"):
        if not paragraph.startswith((INDENT, DASH)):
            yield first_sentence(paragraph.strip(), language)


def is_query(text: str) -> bool:
    """Return whether a text has as many words as a query and does not look like code or a link.

    A sentence that ends with a colon only announces what follows.
    """
    is_sentence = LEAST_QUERY <= len(words(text)) <= MOST_QUERY and not text.endswith((":", "："))
    return is_sentence and is_prose(text)


def is_prose(text: str) -> bool:
    """Return whether a text consists mostly of letters and has few signs of code or addresses."""
    solid = "".join(text.split())
    letters = sum(unicodedata.category(letter)[0] in "LMN" for letter in solid)
    signs = len(_SIGNS.findall(text))
    is_wordy = letters >= LEAST_LETTERS * len(solid) and signs <= MOST_SIGNS * len(text)
    return is_wordy and "://" not in text


def hashed(name: str) -> int:
    """Return 64 bits of a stable hash."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
