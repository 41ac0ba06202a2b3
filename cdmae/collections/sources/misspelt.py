"""Add splits with misspelt queries to another collection, to measure the robustness of systems.

The split ``test`` gets a second split ``test_typos`` with the same passages and judgments. One word
of each of its queries is misspelt in one of five ways, each with the same probability, as by Zhuang
and Zuccon (2021, "Dealing with Typos for BERT-based Passage Retrieval and Ranking", section 3):

``insert``, ``delete``, ``substitute``
    a random letter is inserted, deleted, or replaced by another
``swap``
    two neighbouring letters change places
``adjacent``
    a letter is replaced by its neighbour on a QWERTY keyboard

Stop-words, words of fewer than three letters, and words with other characters than the letters a to
z stay as they are. A query without another word stays as it is, and is counted.
"""

from __future__ import annotations

import random
import re
import string
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cdmae.collections import Counts, Derived
from cdmae.errors import InputError
from cdmae.fields import Natural, settings
from cdmae.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

SUFFIX = "_typos"  # of the name of a split with misspelt queries
SHORTEST = 3  # letters of a word that may be misspelt
KINDS = ("insert", "delete", "substitute", "swap", "adjacent")
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORD = re.compile(r"(?<![\w'-])[A-Za-z]+(?![\w'-])")


@settings
class Settings(Derived):
    """Settings of a collection with further splits of misspelt queries."""

    of: dict[str, Any]
    """The collection whose queries are misspelt: a `source` and its settings."""
    splits: tuple[str, ...] = ("test",)
    """The splits with judgments that get a second split, such as test_typos."""
    seed: Natural = 0
    """Seed of the misspellings."""

    def __post_init__(self) -> None:
        """Refuse splits that are listed twice."""
        if not self.splits or len(set(self.splits)) < len(self.splits):
            raise InputError(
                f"splits is {list(self.splits)}; expected one split or more, each once"
            )
        super().__post_init__()

    def judged(self) -> dict[str, bool]:
        """Return the collection's splits, and the splits with misspelt queries."""
        known = self.base.judged()
        for split in self.splits:
            if not known.get(split):
                own = ", ".join(name for name, has in known.items() if has) or "none"
                raise InputError(f"splits has {split}; expected splits with judgments ({own})")
            if split + SUFFIX in known:
                raise InputError(f"splits has {split}, but {split + SUFFIX} exists; rename it")
        return known | {split + SUFFIX: True for split in self.splits}

    def expected(self) -> tuple[int, float, dict[str, int]] | None:
        """Estimate as for the collection; a split with misspelt queries has as many queries."""
        counts = self.base.expected()
        if counts is None:
            return None
        passages, words, queries = counts
        more = {name + SUFFIX: queries[name] for name in self.splits if name in queries}
        return passages, words, queries | more

    def check(self) -> Counts:
        """Check the collection; a split with misspelt queries has the same judgments."""
        self.judged()
        counts = self.base.check()
        known = counts.splits
        more = {name + SUFFIX: known[name] for name in self.splits if name in known}
        return replace(counts, splits=known | more)

    def load(self, threads: int = 1) -> Collection:
        """Load the collection and misspell the queries of the splits."""
        self.judged()  # checks `splits`
        collection = self.base.load(threads)
        queries = dict(collection.queries)
        qrels = dict(collection.qrels)
        unchanged = {}
        for split in self.splits:
            asked = queries[split]
            pairs = zip(asked["query_id"], asked["text"], strict=True)
            texts = [misspelt(text, f"{self.seed} {name}") for name, text in pairs]
            unchanged[split] = int((asked["text"] == texts).sum())
            queries[split + SUFFIX] = asked.assign(text=texts)
            qrels[split + SUFFIX] = qrels[split]
        about = {"source": "misspelt", "of": collection.about, "unchanged queries": unchanged}
        return replace(collection, queries=queries, qrels=qrels, about=about)


def misspelt(text: str, seed: str) -> str:
    """Misspell one word of a text; a text without a suitable word stays as it is."""
    draw = random.Random(seed)  # noqa: S311 (a repeatable draw, not a secret)
    words = [
        found
        for found in _WORD.finditer(text)
        if len(found[0]) >= SHORTEST and found[0].lower() not in STOP_WORDS
    ]
    if not words:
        return text
    found = draw.choice(words)
    return text[: found.start()] + changed(found[0], draw.choice(KINDS), draw) + text[found.end() :]


def changed(word: str, kind: str, draw: random.Random) -> str:
    """Misspell a word in one way; the result always differs from the word."""
    places = list(range(len(word)))
    if kind == "insert":
        place = draw.randrange(len(word) + 1)
        return word[:place] + draw.choice(string.ascii_lowercase) + word[place:]
    if kind == "swap":
        places = [place for place in places[:-1] if word[place] != word[place + 1]]
        if places:
            place = draw.choice(places)
            return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        kind = "delete"  # all letters of the word are equal
        places = list(range(len(word)))
    place = draw.choice(places)
    if kind == "delete":
        return word[:place] + word[place + 1 :]
    letter = word[place].lower()
    others = neighbours(letter) if kind == "adjacent" else string.ascii_lowercase
    return word[:place] + draw.choice(others.replace(letter, "")) + word[place + 1 :]


def neighbours(letter: str) -> str:
    """Return the letters next to a letter on a QWERTY keyboard, in its row and the rows beside."""
    for number, row in enumerate(KEYBOARD):
        column = row.find(letter)
        if column >= 0:
            beside = row[max(0, column - 1) : column + 2]
            above = KEYBOARD[number - 1][column : column + 2] if number else ""
            below = ""
            if number + 1 < len(KEYBOARD):
                below = KEYBOARD[number + 1][max(0, column - 1) : column + 1]
            return (above + beside + below).replace(letter, "")
    raise ValueError(f"{letter!r} is not a letter from a to z")
