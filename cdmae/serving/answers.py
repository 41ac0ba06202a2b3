"""Formatting the passages that answer a question, and choosing the question's important words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cdmae.languages.scripts import is_unspaced, pairs_of_characters
from cdmae.languages.stop_words import STOP_WORDS
from cdmae.terminal import printable

if TYPE_CHECKING:
    from cdmae.serving.engine import Hit

INDENT = " " * 4
LINES = 6  # the maximum number of lines per passage
TITLE = 300  # the maximum length of a title or an id


def show(hits: Iterable[Hit], width: int) -> str:
    """Format passages, best first, in `width` columns."""
    blocks = []
    for hit in hits:
        title = printable(_clean(hit.title), TITLE)
        name = printable(_clean(hit.passage_id), TITLE)
        origin = f"from {name} " if title else ""
        text = textwrap.fill(
            _clean(hit.text),
            max(width, 20),
            initial_indent=INDENT,
            subsequent_indent=INDENT,
            max_lines=LINES,
            placeholder=" …",
            break_on_hyphens=False,
        )
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
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
