"""The templates of the server's pages, and the words of the passages that they show."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from cdmae.importance.shading import Shades
from cdmae.languages.scripts import word_spans
from cdmae.report.templates import environment

FOLDER = Path(__file__).with_name("templates")
TEMPLATES = environment(FOLDER)
SHOWN = 90  # words of a passage that are shown before "more"


class Word(NamedTuple):
    """A part of a text: its shade from 0 to 5, and whether it is of the query's words."""

    text: str
    shade: int
    asked: bool


def divided(
    text: str, asked: re.Pattern[str], shades: Shades | None
) -> tuple[list[Word], list[Word]]:
    """Divide a text into parts of one appearance; return its first words and the rest.

    asked: matches the words of the query, as `answers.question_words` does. shades: the shades of
    words; None: no shading.
    """
    spans = shades.spans(text) if shades else [(text, 0)]
    shade = [level for span, level in spans for _ in span]  # of each character
    bold = [False] * len(text)
    for match in asked.finditer(text):
        start, end = match.span("word")
        bold[start:end] = [True] * (end - start)
    ends = [end for _, end in word_spans(text)]
    end = ends[SHOWN - 1] if len(ends) > SHOWN + SHOWN // 3 else len(text)
    is_after = [at >= end for at in range(len(text))]
    parts: tuple[list[Word], list[Word]] = ([], [])
    at = 0
    for (is_rest, *look), same in groupby(zip(is_after, shade, bold, strict=True)):
        length = len(list(same))
        parts[is_rest].append(Word(text[at : at + length], *look))
        at += length
    return parts
