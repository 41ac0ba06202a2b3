"""Misspell words of tokenised passages, in the five ways of `cdmae.collections.sources.misspelt`.

A word is decoded, misspelt and tokenised again, usually into other and more word-pieces. The
misspelling depends on the word's random draw alone.

Shapes: `B` passages, `n` word-pieces of the longest one, `W` words.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from cdmae import masking
from cdmae.collections.sources.misspelt import KINDS, SHORTEST, changed
from cdmae.masking.noise import draws, uniforms
from cdmae.models.ragged import Ragged, starts_of
from cdmae.stop_words import STOP_WORDS
from cdmae.tokens.vocabulary import Vocabulary, read_backend

TYPO = 5  # the salt of the random stream
CACHED = 1 << 18  # words whose text is kept
_SUITABLE = re.compile(rf"[A-Za-z]{{{SHORTEST},}}").fullmatch


class Spelling:
    """Finds and misspells the words of passages."""

    def __init__(self, tokenizer: Path | str, vocabulary: Vocabulary) -> None:
        """Read the tokenizer in a folder."""
        self._backend = read_backend(tokenizer)
        self._vocabulary = vocabulary
        self._text = lru_cache(CACHED)(self._decode)

    def choose(self, batch: masking.Batch, share: float, keys: np.ndarray) -> np.ndarray:
        """Choose each word that can be misspelt with the probability `share`: bool [B, n]."""
        found = np.zeros(batch.ids.size, bool)
        begins, ends = _words(batch)
        drawn = uniforms(keys, batch.rows, batch.ids.shape[1], salt=masking.SELECT).ravel()[begins]
        ids = batch.ids.ravel()
        few = drawn < share
        for begin, end in zip(begins[few].tolist(), ends[few].tolist(), strict=True):
            found[begin:end] = bool(self.text(ids[begin:end]))
        return found.reshape(batch.ids.shape)

    def misspell(
        self, batch: masking.Batch, chosen: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Ragged]:
        """Misspell the `chosen` words, bool [B, n].

        Returns the offsets of their first word-pieces and of their ends in the padded passages
        [B x n], int64 [W], and their new word-pieces, W texts.
        """
        begins, ends = _words(batch)
        whole = chosen.ravel()[begins]
        begins = begins[whole]
        ends = ends[whole]
        seeds = draws(keys, batch.rows, batch.ids.shape[1], salt=TYPO).ravel()[begins]
        ids = batch.ids.ravel()
        texts = []
        for begin, end, seed in zip(begins.tolist(), ends.tolist(), seeds.tolist(), strict=True):
            draw = random.Random(seed)  # noqa: S311 (a repeatable draw, not a secret)
            texts.append(changed(self.text(ids[begin:end]), draw.choice(KINDS), draw))
        return begins, ends, self.tokenised(texts)

    def text(self, ids: np.ndarray) -> str:
        """Return the text of a word, or nothing if it cannot be misspelt; ids: its word-pieces."""
        return self._text(tuple(ids.tolist()))

    def _decode(self, ids: tuple[int, ...]) -> str:
        pieces = self._vocabulary.of_model(np.array(ids))
        text = self._backend.decode(pieces.tolist()).strip()
        return text if _SUITABLE(text) and text.lower() not in STOP_WORDS else ""

    def tokenised(self, words: list[str]) -> Ragged:
        """Tokenise words that follow a space; W texts."""
        doubled = self._vocabulary.doubled
        given = [f" {word}" for word in words] if doubled else words
        pieces = []
        for encoding in self._backend.encode_batch_fast(given, add_special_tokens=False):
            ids = np.array(encoding.ids, np.int32)
            if doubled:
                ids[1:] += self._vocabulary.pieces
            pieces.append(ids)
        lengths = np.array([len(ids) for ids in pieces], np.int64)
        return Ragged(np.concatenate([np.empty(0, np.int32), *pieces]), starts_of(lengths))


def _words(batch: masking.Batch) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of the words' beginnings and ends in the padded passages, int64 [W]."""
    rows, columns = np.nonzero(batch.word_starts)
    width = batch.ids.shape[1]
    begins = rows * width + columns
    of_rows = rows * width + batch.lengths[rows]
    ends = np.minimum(np.append(begins[1:], batch.ids.size), of_rows)
    return begins, ends
