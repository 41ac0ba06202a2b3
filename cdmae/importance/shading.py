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
from cdmae.tokens.words import begins

# backgrounds from none to dark, among a terminal's 256 colours; the text is black
GROUNDS = (None, 230, 223, 217, 210, 203)


class Span(NamedTuple):
    """A part of a text, and its shade."""

    text: str
    shade: int


class Word(NamedTuple):
    """A word, its importance in nats, and the number of its word-pieces."""

    text: str
    importance: float
    pieces: int = 1


class Shades:
    """A table of importance with its tokenizer, for any number of texts."""

    def __init__(self, table: Path | str, tokenizer: Path | str) -> None:
        """Read the table of importance and the tokenizer from disk."""
        self.table = ami.Table.read(table)
        self.tokeniser = Tokeniser(tokenizer)
        self.backend = read_backend(tokenizer)
        self.pieces = read_pieces(tokenizer)

    def words(self, text: str) -> list[Word]:
        """Return the words of a text in the tokenizer's spelling, with importance (eq. 8)."""
        ids = np.asarray(self.tokeniser.tokens(pa.table({"title": [""], "text": [text]})).ids)
        word_starts = self.tokeniser.vocabulary.word_starts
        values = self.table.score(ids, word_starts)
        starts = np.flatnonzero(begins(ids, np.zeros(1, np.int64), word_starts, "word"))
        words = np.split(ids, starts[1:]) if len(ids) else []
        if self.table.unit == "wordpiece":
            values = values[starts]
        return [
            Word(spell(word, self.pieces), float(value), len(word))
            for word, value in zip(words, values, strict=True)
        ]

    def spans(self, text: str) -> list[Span]:
        """Cut a text, in its own spelling, into spans of equal shade.

        Joined, the spans are the text. Importance is scaled to the most important word of the text.
        """
        words = self.words(text)
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
    """Colour the background of each word by its importance."""
    levels = shades(word.importance for word in words)
    shaded = []
    for word, level in zip(words, levels, strict=True):
        text = printable(word.text)
        if GROUNDS[level] is not None:
            text = f"\x1b[48;5;{GROUNDS[level]}m\x1b[38;5;16m{text}\x1b[0m"
        shaded.append(text)
    return " ".join(shaded)


def as_numbers(words: Sequence[Word]) -> str:
    """Write tab-separated values with a header: a word, and its importance."""
    lines = [f"{printable(word.text)}\t{word.importance:.2f}" for word in words]
    return "\n".join(["word\timportance (nats)", *lines])
