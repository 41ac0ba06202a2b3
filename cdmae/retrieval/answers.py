"""Formatting the passages that answer a question, with the question's words emphasised."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import NamedTuple

from cdmae.stop_words import STOP_WORDS
from cdmae.terminal import printable

BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
INDENT = " " * 4
LINES = 6  # the maximum number of lines per passage
TITLE = 300  # the maximum length of a title or an id


class Answer(NamedTuple):
    """A passage that answers a question, with its score."""

    score: float
    passage_id: str
    title: str
    text: str


def show(question: str, answers: Iterable[Answer], *, width: int, coloured: bool) -> str:
    """Format answers, best first, in `width` columns, with terminal escapes if `coloured`."""
    words = question_words(question) if coloured else set()
    dim = DIM if coloured else ""
    plain = PLAIN if coloured else ""
    blocks = []
    for rank, answer in enumerate(answers, 1):
        title = _emphasised(printable(_clean(answer.title), TITLE), words)
        name = printable(_clean(answer.passage_id), TITLE)
        head = f"{rank}. {title or name}"
        origin = f"from {name} " if title else ""
        source = f"{INDENT}{dim}{origin}(score {answer.score:.2f}){plain}"
        lines = textwrap.wrap(
            _clean(answer.text),
            max(width, 20),
            initial_indent=INDENT,
            subsequent_indent=INDENT,
            max_lines=LINES,
            placeholder=" …",
            break_on_hyphens=False,
        )
        blocks.append("\n".join([head, source, *(_emphasised(line, words) for line in lines)]))
    return "\n\n".join(blocks) or "no passage was found"


def question_words(question: str) -> set[str]:
    """Choose the words of a question to emphasise: all but stop-words, or else all words."""
    words = {word.casefold() for word in re.findall(r"\w+", question)}
    return words - STOP_WORDS or words


def _emphasised(line: str, words: set[str]) -> str:
    def bold(match: re.Match[str]) -> str:
        return f"{BOLD}{match[0]}{PLAIN}" if match[0].casefold() in words else match[0]

    return re.sub(r"\w+", bold, line)


def _clean(text: str) -> str:
    """Return the text as one line without control characters, which would affect the terminal."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
