"""Shade a text by the importance of its words in a terminal; print numbers elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cdmae.importance import ami
from cdmae.terminal import printable
from cdmae.tokens.tokenise import Tokeniser
from cdmae.tokens.vocabulary import read_backend, read_pieces

# backgrounds from none to dark, among a terminal's 256 colours; the text is black
GROUNDS = (None, 230, 223, 217, 210, 203)
GUESSED = 0.5  # below this share of repeated n-grams, a word's importance is mostly a guess
UNSEEN = "?"
NOTE = (
    f"{UNSEEN} the collection repeats fewer than half of the word's n-grams; an unseen one counts "
    "as seen once, which makes the word look important"
)


class Span(NamedTuple):
    """A part of a text, and its shade."""

    text: str
    shade: int


class Word(NamedTuple):
    """A word, its importance in nats, and the share of its n-grams that the collection repeats.

    pieces: the number of its word-pieces.
    """

    text: str
    importance: float
    seen: float = 1.0
    pieces: int = 1

    @property
    def mark(self) -> str:
        """Return a mark if the word's importance is mostly a guess, otherwise an empty string."""
        return UNSEEN if self.seen < GUESSED else ""


class Shades:
    """A table of importance with its tokenizer, for any number of texts."""

    def __init__(self, table: Path | str, tokenizer: Path | str) -> None:
        """Read the table of importance and the tokenizer from disk."""
        self.table = ami.Table.read(table)
        self.tokeniser = Tokeniser(tokenizer, 1)
        self.backend = read_backend(tokenizer)
        self.pieces = read_pieces(tokenizer)

    def words(self, texts: Sequence[str]) -> list[list[Word]]:
        """Return the words of each text in the tokenizer's spelling, with importance (eq. 8)."""
        tokens = self.tokeniser.tokens(pa.table({"title": [""] * len(texts), "text": texts}))
        segments = np.split(np.asarray(tokens.ids), tokens.starts[1:-1])
        vocabulary = self.tokeniser.vocabulary
        found = []
        for ids, values, seen in zip(
            segments, *self.table.score(segments, vocabulary), strict=True
        ):
            is_first = np.arange(len(ids)) == 0
            begins = np.flatnonzero(vocabulary.word_starts[ids] | is_first)
            words = np.split(ids, begins[1:]) if len(ids) else []
            found.append(
                [
                    Word(spell(word, self.pieces), float(values[at]), float(seen[at]), len(word))
                    for word, at in zip(words, begins, strict=True)
                ]
            )
        return found

    def spans(self, text: str) -> list[Span]:
        """Cut a text, in its own spelling, into spans of equal shade.

        Joined, the spans are the text. Importance is scaled to the most important word of the text.
        """
        (words,) = self.words([text])
        offsets = self.backend.encode(text, add_special_tokens=False).offsets
        if not words or len(offsets) != sum(word.pieces for word in words):
            return [Span(text, 0)]
        spans = []
        first = 0
        end = 0
        for word, shade in zip(words, shades(word.importance for word in words), strict=True):
            begin = offsets[first][0]
            spans.append(Span(text[end:begin], 0))
            first += word.pieces
            end = offsets[first - 1][1]
            spans.append(Span(text[begin:end], shade))
        spans.append(Span(text[end:], 0))
        return [span for span in spans if span.text]


def shades(values: Iterable[float]) -> list[int]:
    """Return shades from 0 (none) to 5 (darkest); the most important word has the darkest."""
    importance = list(values)
    top = max([value for value in importance if value > 0], default=1.0)
    shares = [max(0.0, min(1.0, value / top)) for value in importance]
    return [round(share * (len(GROUNDS) - 1)) for share in shares]


def spell(word: Iterable[int], pieces: list[str]) -> str:
    """Join word-pieces to the text of a word."""
    return "".join(pieces[piece].removeprefix("##") for piece in word)


def for_terminal(words: Sequence[Word]) -> str:
    """Colour the background of each word by its importance; guesses are marked."""
    levels = shades(word.importance for word in words)
    shaded = []
    for word, level in zip(words, levels, strict=True):
        text = printable(word.text)
        ground = GROUNDS[level]
        if ground is not None:
            text = f"\x1b[48;5;{ground}m\x1b[38;5;16m{text}\x1b[0m"
        shaded.append(text + word.mark)
    return " ".join(shaded)


def as_numbers(words: Sequence[Word]) -> str:
    """Write tab-separated values with a header: a word, its importance, a mark for a guess."""
    lines = ["word\timportance (nats)\tguess"]
    for word in words:
        columns = (printable(word.text), f"{word.importance:.2f}", word.mark)
        lines.append("\t".join(columns).rstrip("\t"))
    return "\n".join(lines)
