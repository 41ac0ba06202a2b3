"""A text shaded by the importance of its words, for a terminal; as numbers for everything else."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cdmae.errors import InputError
from cdmae.importance import ami
from cdmae.terminal import printable
from cdmae.tokens.tokenise import tokenise
from cdmae.tokens.vocabulary import Vocabulary, read_pieces

# from no ground to a dark one, of the 256 colours that terminals know; the text on it is black
GROUNDS = (None, 230, 223, 217, 210, 203)


GUESSED = 0.5  # below this share of repeated n-grams, a word's importance is mostly a guess
UNSEEN = "?"
NOTE = (
    f"{UNSEEN} the collection repeats fewer than half of the word's n-grams; an unseen one counts "
    "as seen once, which makes the word look important"
)


class Word(NamedTuple):
    """A word, its importance in nats, and the share of its n-grams that the collection repeats."""

    text: str
    importance: float
    seen: float = 1.0

    @property
    def mark(self) -> str:
        """Return the sign of a word whose importance is mostly a guess."""
        return UNSEEN if self.seen < GUESSED else ""


def score(text: str, table: Path | str, tokenizer: Path | str) -> list[Word]:
    """Return the words of `text` in the tokenizer's spelling with their importance (equation 8)."""
    vocabulary, pieces = Vocabulary.read(tokenizer), read_pieces(tokenizer)
    ids = np.asarray(tokenise(pa.table({"title": [""], "text": [text]}), tokenizer, 1).ids)
    if not len(ids):
        raise InputError(f"the text {text!r} has no words; allowed: a text with at least one")
    estimate = ami.Table.read(table)
    values, seen = estimate.score(ids, vocabulary), estimate.seen(ids, vocabulary)
    begins = np.flatnonzero(vocabulary.word_starts[ids] | (np.arange(len(ids)) == 0))
    return [
        Word(spell(word, pieces), float(values[begin]), float(seen[begin]))
        for word, begin in zip(np.split(ids, begins[1:]), begins, strict=True)
    ]


def spell(word: Iterable[int], pieces: list[str]) -> str:
    """Write a word of some word-pieces."""
    return "".join(pieces[piece].removeprefix("##") for piece in word)


def for_terminal(scored: Iterable[tuple[str, float] | Word]) -> str:
    """Write the words on grounds as dark as they are important; guesses are marked."""
    words = list(starmap(Word, scored))
    top = max([word.importance for word in words if word.importance > 0], default=1.0)
    shown = []
    for word in words:
        text = printable(word.text)
        ground = GROUNDS[round(max(0.0, min(1.0, word.importance / top)) * (len(GROUNDS) - 1))]
        shaded = text if ground is None else f"\x1b[48;5;{ground}m\x1b[38;5;16m{text}\x1b[0m"
        shown.append(shaded + word.mark)
    return " ".join(shown)


def as_numbers(scored: Iterable[tuple[str, float] | Word]) -> str:
    """Write tab-separated values with a header: a word, its importance, a mark for a guess."""
    lines = ["word\timportance (nats)\tguess"]
    for word in starmap(Word, scored):
        line = f"{printable(word.text)}\t{word.importance:.2f}\t{word.mark}"
        lines.append(line.rstrip("\t"))
    return "\n".join(lines)
