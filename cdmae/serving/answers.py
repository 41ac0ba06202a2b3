"""Formatting the passages that answer a question, and choosing the question's important words."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cdmae.languages.scripts import is_unspaced, pairs_of_characters
from cdmae.languages.stop_words import STOP_WORDS
from cdmae.terminal import JOINERS, printable

if TYPE_CHECKING:
    from cdmae.serving.engine import Hit

INDENT = " " * 4
LINES = 6  # the maximum number of lines per passage
PAD = "\0"  # before a wide character, so that it counts twice
TITLE = 300  # the maximum length of a title or an id


def show(hits: Iterable[Hit], width: int) -> str:
    """Format passages, best first, in `width` columns."""
    blocks = []
    for hit in hits:
        title = printable(_clean(hit.title), TITLE)
        name = printable(_clean(hit.passage_id), TITLE)
        origin = f"from {name} " if title else ""
        text = _wrapped(_clean(hit.text), max(width, 20))
        head = f"{hit.rank}. {title or name}\n{INDENT}{origin}(score {hit.score:.2f})"
        blocks.append(f"{head}\n{text}" if text else head)
    return "\n\n".join(blocks) or "no passage was found"


def question_words(question: str) -> re.Pattern[str]:
    """Match the words of a question to emphasise in a text: all but stop-words, or else all words.

    Of a word in a script without spaces, matches are any two successive characters. Matches
    overlap: they are the group `word` of empty matches.
    """
    words = set(pairs_of_characters(question).split())
    found = [
        re.escape(word) if is_unspaced(word) else rf"(?<![^\W_]){re.escape(word)}(?![^\W_])"
        for word in sorted(words - STOP_WORDS or words)
    ]
    return re.compile(f"(?=(?P<word>{'|'.join(found) or '(?!)'}))", re.IGNORECASE)


def _clean(text: str) -> str:
    """Return the text as one line without control characters, which would affect the terminal."""
    letters = text.replace("\u00ad", "")  # soft hyphens
    kept = (letter if letter.isprintable() or letter in JOINERS else " " for letter in letters)
    return " ".join("".join(kept).split())


def _wrapped(text: str, width: int) -> str:
    """Wrap a text in `width` columns, of which wide characters, such as Chinese ones, take two."""
    padded = "".join(
        f"{PAD}{letter}" if unicodedata.east_asian_width(letter) in "FW" else letter
        for letter in text
    )
    lines = textwrap.fill(
        padded,
        width - 1,  # a line may end between a wide character and its pad
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        max_lines=LINES,
        placeholder=" …",
        break_on_hyphens=False,
    )
    return lines.replace(PAD, "")
