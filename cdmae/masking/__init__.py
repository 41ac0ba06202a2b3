"""Masking (equation 1): choose the word-pieces to predict, and make the masked input.

The folder `strategies` has one file per strategy, named as in the config, unless its name begins
with ``_``. Such a file has

- ``select(batch, side, key)``, which returns the word-pieces to mask, bool [B, n]: ``batch.k[b]``
  of the ``batch.candidates`` of passage b;
- perhaps ``values(corpus)``: a number for each word-piece of the collection, float16 [T], from what
  `Corpus` knows about it. It is computed once, and `select` finds it in ``batch.values``;
- perhaps ``READS = "importance"``, if it uses ``corpus.importance`` and ``side.sigma``, or
  ``READS = "ngrams"``, if it uses ``corpus.ngrams``, which are then counted in words.

Every draw depends on (seed, side, epoch) through the key, on the passage's row and on the
column, and on nothing else: the masks of a passage do not depend on its batch, on the process
or on the order of the passages.

Shapes: `B` passages, `n` columns of the longest passage (with [CLS] and [SEP]), `T` word-pieces of
the collection.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cdmae.errors import InputError
from cdmae.importance import ami, ngrams
from cdmae.masking.noise import Key, draws, key
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.prompts import FRAME
from cdmae.tokens.vocabulary import Vocabulary, read_pieces

__all__ = ["key"]  # besides what is defined here

SELECT, CORRUPT = 1, 2  # salts of the random streams; objectives have 3 and 4
# The upper half of a draw decides whether a token is replaced, the lower half selects the token.
HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)


# --- passages -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """A collection and what is known about its words.

    tokenizer: its folder, for the spelling of words. estimate: the folder of an importance or of
    n-grams, or None.
    """

    tokens: Tokens
    vocabulary: Vocabulary
    tokenizer: Path | str | None = None
    estimate: Path | str | None = None

    @property
    def pieces(self) -> list[str]:
        """Return the spelling of each word-piece by id; continuations of words begin with ##."""
        return read_pieces(self.tokenizer)

    @property
    def unit(self) -> str:
        """Return the unit of the importance: ``word`` or ``wordpiece``."""
        return "word" if self.estimate is None else ngrams.unit_of(self.estimate)

    @property
    def importance(self) -> np.ndarray:
        """Return the importance of each word-piece, float16 [T]."""
        if self.estimate is None:
            raise InputError('a strategy reads the importance without READS = "importance"')
        return ami.read_values(self.estimate)

    @property
    def ngrams(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the counts [L, W] and the totals [L] of n-grams (`cdmae.importance.ngrams`)."""
        folder = ngrams.folder_of(self.estimate)
        counts = np.load(folder / "counts.npy", mmap_mode="r")
        totals = np.load(folder / "totals.npy", mmap_mode="r")
        return counts, totals


@dataclass(frozen=True)
class Batch:
    """Passages to be masked, framed by [CLS] and [SEP] and padded."""

    ids: np.ndarray  # int32 [B, n], 0 where padded
    lengths: np.ndarray  # int64 [B], without [CLS] and [SEP]
    rows: np.ndarray  # int64 [B], row numbers in the collection, which select the random draws
    word_starts: np.ndarray  # bool [B, n]
    candidates: np.ndarray  # bool [B, n], neither padding nor a special token
    values: np.ndarray | None = None  # float32 [B, n], the `values` of the strategy
    k: np.ndarray | None = None  # int64 [B], the number of candidates that are masked

    @property
    def real(self) -> np.ndarray:
        """Mark [CLS], the word-pieces and [SEP], as opposed to padding: bool [B, n]."""
        return np.arange(self.ids.shape[1]) < self.lengths[:, None] + FRAME

    @property
    def inside(self) -> np.ndarray:
        """Mark the word-pieces alone: bool [B, n]."""
        columns = np.arange(self.ids.shape[1])
        return (columns > 0) & (columns <= self.lengths[:, None])

    def of_words(self, values: np.ndarray) -> np.ndarray:
        """Give each word-piece the value of its word's first one: [B, n]."""
        positions = np.arange(self.ids.shape[1])
        first = np.maximum.accumulate(np.where(self.word_starts, positions, 0), axis=1)
        return np.take_along_axis(values, first, axis=1)


def read(
    tokens: Tokens,
    rows: np.ndarray,
    length: int,
    vocabulary: Vocabulary,
    values: np.ndarray | None = None,
) -> Batch:
    """Read the passages `rows`, cut to `length` word-pieces; `values` are float16 [T]."""
    rows = np.asarray(rows, dtype=np.int64)
    begins = tokens.starts[rows]
    lengths = np.minimum(tokens.starts[rows + 1] - begins, length)
    return pad(tokens, rows, begins, lengths, vocabulary, values)


def pad(
    tokens: Tokens,
    rows: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    vocabulary: Vocabulary,
    values: np.ndarray | None = None,
) -> Batch:
    """Read the word-pieces ``begins .. begins + lengths``; `rows` select the random draws."""
    columns = np.arange(int(lengths.max(initial=0)) + FRAME)
    inside = (columns > 0) & (columns <= lengths[:, None])
    at = (begins[:, None] + columns - 1)[inside]

    def padded(array: np.ndarray, kind: type) -> np.ndarray:
        grid = np.zeros(inside.shape, kind)
        grid[inside] = array[at]
        return grid

    ids = padded(tokens.ids, np.int32)
    word_starts = inside & (vocabulary.word_starts[ids] | (columns == 1))
    candidates = inside & ~vocabulary.special[ids]
    ids[:, 0] = vocabulary.cls_id
    ids[np.arange(len(rows)), lengths + 1] = vocabulary.sep_id
    own = None if values is None else padded(values, np.float32)
    return Batch(ids, lengths, rows, word_starts, candidates, own)


# --- equation 1 -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """How the input of the encoder or the decoder is masked."""

    strategy: str
    ratio: float  # share of the candidates that are masked (p_enc, p_dec)
    sigma: float = 1.0  # standard deviation of the noise on the importance, in nats
    unit: str = "word"  # or `wordpiece`: the unit that shares one draw of noise
    mask_share: float = 0.8  # of the masked tokens, replaced by [MASK]
    random_share: float = 0.1  # of the masked tokens, replaced by a random token; the rest is kept
    beyond: str = ""  # another side: its masked tokens are also masked here, and count in `ratio`


PLAIN = Side("", 0.0)  # the input is the text itself, and every token is predicted


def side_of(settings: Any, name: str, unit: str = "word", beyond: str = "") -> Side:
    """Return the side ``encoder`` or ``decoder`` of the settings; unit: of the importance."""
    return Side(
        getattr(settings, f"{name}_masking"),
        getattr(settings, f"{name}_ratio"),
        settings.sigma,
        unit,
        settings.mask_share,
        settings.random_share,
        beyond,
    )


def mask(
    batch: Batch, side: Side, vocabulary: Vocabulary, key: Key, first: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return a side's input, int32 [B, n], and the tokens it predicts, bool [B, n] (equation 1).

    first: tokens that are masked in any case, bool [B, n].
    """
    if side == PLAIN:
        return batch.ids, batch.candidates
    chosen = choose(batch, side, key, first)
    return corrupt(batch, chosen, side, vocabulary, key), chosen


def choose(batch: Batch, side: Side, key: Key, first: np.ndarray | None = None) -> np.ndarray:
    """Choose k = floor(n x p) of n candidates per passage (Algorithm 1, line 6): bool [B, n].

    first: tokens that are chosen in any case, bool [B, n]; the strategy chooses the rest of the k.
    """
    if first is None:
        first = np.zeros_like(batch.candidates)
    others = batch.candidates & ~first
    left = budget(batch.candidates, side.ratio) - (batch.candidates & first).sum(axis=1)
    k = np.clip(left, 0, others.sum(axis=1))
    return strategy(side.strategy).select(replace(batch, candidates=others, k=k), side, key) | first


def budget(candidates: np.ndarray, ratio: float) -> np.ndarray:
    """Return k for the candidates of each passage, bool [B, n]: int64 [B]."""
    # The small term corrects rounding: 0.29 x 100 is 28.999999999999996 in floating point.
    return np.floor(candidates.sum(axis=1) * ratio + 1e-9).astype(np.int64)


def corrupt(
    batch: Batch, chosen: np.ndarray, side: Side, vocabulary: Vocabulary, key: Key
) -> np.ndarray:
    """Replace `mask_share` of the chosen tokens by [MASK] and `random_share` by random tokens.

    Random tokens are drawn from the non-special vocabulary. The other chosen tokens are kept.
    """
    bits = draws(key, batch.rows, batch.ids.shape[1], salt=CORRUPT)[chosen]
    ordinary = vocabulary.ordinary
    random = ordinary[(bits & LOWER) * np.uint64(len(ordinary)) >> HALF]
    replaced = side.mask_share + side.random_share
    share = bits >> HALF
    inputs = batch.ids.copy()
    kept_or_random = np.where(share < np.uint64(replaced * 2.0**32), random, inputs[chosen])
    is_mask = share < np.uint64(side.mask_share * 2.0**32)
    inputs[chosen] = np.where(is_mask, vocabulary.mask_id, kept_or_random)
    return inputs


def strategy(name: str) -> ModuleType:
    """Return the module of a strategy; the config check has already rejected unknown names."""
    return importlib.import_module(f"{__name__}.strategies.{name}")


def values(names: Iterable[str], corpus: Corpus) -> dict[str, np.ndarray]:
    """Compute a value per word-piece, float16 [T], for each strategy that needs values.

    Raises `InputError` for a strategy that returns something else.
    """
    modules = {name: strategy(name) for name in dict.fromkeys(names)}
    found = {
        name: module.values(corpus) for name, module in modules.items() if hasattr(module, "values")
    }
    for name, numbers in found.items():
        if np.shape(numbers) != corpus.tokens.ids.shape or not np.isfinite(numbers).all():
            raise InputError(
                f"the masking strategy {name} returns values of shape {np.shape(numbers)}; "
                f"expected a finite number for each of {len(corpus.tokens.ids)} word-pieces"
            )
    return found
