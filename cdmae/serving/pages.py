"""The templates of the server's pages, and the words of the passages that they show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from cdmae.importance.shading import Shades
from cdmae.report.templates import environment

FOLDER = Path(__file__).with_name("templates")
TEMPLATES = environment(FOLDER)
SHOWN = 90  # words of a passage that are shown before "more"


class Word(NamedTuple):
    """A part of a text: its shade from 0 to 5, and whether it is a word of the query."""

    text: str
    shade: int
    asked: bool


def divided(text: str, asked: set[str], shades: Shades | None) -> tuple[list[Word], list[Word]]:
    """Divide a text into words and separators; return its first words and the rest.

    asked: the words of the query, case-folded. shades: the shades of words; None: no shading.
    """
    spans = shades.spans(text) if shades else [(text, 0)]
    words = [
        Word(part, shade, part.casefold() in asked)
        for span, shade in spans
        for part in re.split(r"(\w+)", span)
        if part
    ]
    ends = [index + 1 for index, word in enumerate(words) if re.match(r"\w", word.text)]
    end = ends[SHOWN - 1] if len(ends) > SHOWN + SHOWN // 3 else len(words)
    return words[:end], words[end:]
