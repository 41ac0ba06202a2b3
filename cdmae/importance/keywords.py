"""Keywords of passages by importance: queries for a collection with the source `pseudo`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.files import complete
from cdmae.importance.shading import Shades, Word
from cdmae.log import Progress
from cdmae.stop_words import STOP_WORDS

AT_ONCE = 1024  # passages that are tokenised together


def write_keywords(
    *, settings: dict[str, Any], importance: Path, tokenizer: Path, output: Path
) -> None:
    """Write the keywords of each passage: lines of passage id, tab, words.

    settings: of an entry of `collections` with the source `pseudo`, in which `keywords` is the
    number of words. importance: a folder of importance with the table that scores new text. A
    passage with fewer words has no line.
    """
    made = collections.settings_of(settings, "collection")
    shades = Shades(importance, tokenizer)
    known = made.base.expected()
    with (
        Progress(known[0] if known else 0, unit="passages", label="keywords") as progress,
        complete(output) as aside,
        aside.open("w", encoding="utf-8") as file,
    ):
        rows = made.base.load().rows()
        while passages := list(islice(rows, AT_ONCE)):
            texts = [text for _, _, text in passages]
            for (passage_id, _, _), scored in zip(passages, shades.words(texts), strict=True):
                words = keywords(scored, made.keywords)
                if len(words) == made.keywords:
                    file.write(f"{passage_id}\t{' '.join(words)}\n")
            progress.advance(len(passages))


def keywords(words: Iterable[Word], number: int) -> list[str]:
    """Choose a text's most important words, each once, in the order of the text.

    Stop-words, punctuation and words without a spelling are left out. A word that the text repeats
    has its largest importance; of equally important words, the first is chosen.
    """
    best: dict[str, float] = {}
    for word in words:
        if _is_keyword(word.text):
            best[word.text] = max(word.importance, best.get(word.text, word.importance))
    chosen = sorted(best, key=lambda text: -best[text])[:number]
    return [text for text in best if text in chosen]


def _is_keyword(text: str) -> bool:
    return text not in STOP_WORDS and any(map(str.isalnum, text)) and not text.startswith("[")
