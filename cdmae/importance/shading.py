"""Shade a text by the importance of its words in a terminal; print numbers elsewhere."""

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

# backgrounds from none to dark, among a terminal's 256 colours; the text is black
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
        """Return a mark if the word's importance is mostly a guess, otherwise an empty string."""
        return UNSEEN if self.seen < GUESSED else ""


def score(text: str, table: Path | str, tokenizer: Path | str) -> list[Word]:
    """Return the words of `text` in the tokenizer's spelling with their importance (equation 8)."""
    vocabulary = Vocabulary.read(tokenizer)
    pieces = read_pieces(tokenizer)
    ids = np.asarray(tokenise(pa.table({"title": [""], "text": [text]}), tokenizer, 1).ids)
    if not len(ids):
        raise InputError(f"the text {text!r} has no words; allowed: a text with at least one")
    estimate = ami.Table.read(table)
    values = estimate.score(ids, vocabulary)
    seen = estimate.seen(ids, vocabulary)
    begins = np.flatnonzero(vocabulary.word_starts[ids] | (np.arange(len(ids)) == 0))
    return [
        Word(spell(word, pieces), float(values[begin]), float(seen[begin]))
        for word, begin in zip(np.split(ids, begins[1:]), begins, strict=True)
    ]


def spell(word: Iterable[int], pieces: list[str]) -> str:
    """Join word-pieces to the text of a word."""
    return "".join(pieces[piece].removeprefix("##") for piece in word)


def for_terminal(scored: Iterable[tuple[str, float] | Word]) -> str:
    """Colour the background of each word by its importance; guesses are marked."""
    words = list(starmap(Word, scored))
    top = max([word.importance for word in words if word.importance > 0], default=1.0)
    shaded = []
    for word in words:
        text = printable(word.text)
        share = max(0.0, min(1.0, word.importance / top))
        ground = GROUNDS[round(share * (len(GROUNDS) - 1))]
        if ground is not None:
            text = f"\x1b[48;5;{ground}m\x1b[38;5;16m{text}\x1b[0m"
        shaded.append(text + word.mark)
    return " ".join(shaded)


def as_numbers(scored: Iterable[tuple[str, float] | Word]) -> str:
    """Write tab-separated values with a header: a word, its importance, a mark for a guess."""
    lines = ["word\timportance (nats)\tguess"]
    for word in starmap(Word, scored):
        columns = (printable(word.text), f"{word.importance:.2f}", word.mark)
        lines.append("\t".join(columns).rstrip("\t"))
    return "\n".join(lines)
