"""A text shaded by the importance of its words, for a terminal; as numbers for everything else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from cdmae.errors import InputError
from cdmae.importance import ami
from cdmae.terminal import printable
from cdmae.tokens.tokenise import tokenise
from cdmae.tokens.vocabulary import Vocabulary, read_pieces

# from no ground to a dark one, of the 256 colours that terminals know; the text on it is black
GROUNDS = (None, 230, 223, 217, 210, 203)


def score(text: str, table: Path | str, tokenizer: Path | str) -> list[tuple[str, float]]:
    """Return the words of `text` as the tokenizer spells them, and their importance in nats (equation 8)."""
    vocabulary, pieces = Vocabulary.read(tokenizer), read_pieces(tokenizer)
    ids = np.asarray(tokenise(pa.table({"title": [""], "text": [text]}), tokenizer, 1).ids)
    if not len(ids):
        raise InputError(f"the text {text!r} has no words; allowed: a text with at least one")
    values = ami.Table.read(table).score(ids, vocabulary)
    begins = np.flatnonzero(vocabulary.word_starts[ids] | (np.arange(len(ids)) == 0))
    words = np.split(ids, begins[1:])
    return [(spell(word, pieces), float(values[begin])) for word, begin in zip(words, begins, strict=True)]


def spell(word: Iterable[int], pieces: list[str]) -> str:
    """Write a word of some word-pieces."""
    return "".join(pieces[piece].removeprefix("##") for piece in word)


def for_terminal(words: list[tuple[str, float]]) -> str:
    """Write the words on grounds as dark as they are important, next to each other."""
    top = max([value for _, value in words if value > 0], default=1.0)
    grounds = [GROUNDS[round(max(0.0, min(1.0, value / top)) * (len(GROUNDS) - 1))] for _, value in words]
    return " ".join(
        printable(word) if ground is None else f"\x1b[48;5;{ground}m\x1b[38;5;16m{printable(word)}\x1b[0m"
        for (word, _), ground in zip(words, grounds, strict=True)
    )


def as_numbers(words: list[tuple[str, float]]) -> str:
    """Write one word a line: word, tab, importance."""
    return "\n".join(f"{printable(word)}\t{value:.2f}" for word, value in words)
