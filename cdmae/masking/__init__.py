"""Masking (equation 1): choose the word-pieces to predict, and make the masked input.

The folder `strategies` has one file per strategy. The file's name is the strategy's name in the
config (`encoder_masking`, `decoder_masking`), unless it begins with ``_``. A strategy defines
``select(batch, side, key) -> bool [B, n]``. A strategy that needs a number for each word-piece
also defines ``values(tokens, importance) -> float16 [T]``. These values are computed once for the
collection, and `select` finds the values of its passages in ``batch.importance``.

Every draw depends on (seed, side, epoch) through the key, on the passage's row and on the
position, and on nothing else: the masks of a passage do not depend on its batch, on the process
or on the order of the passages.

Shapes: `B` passages, `n` word-pieces of the longest passage (without [CLS] and [SEP]), `T`
word-pieces of the collection.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking.noise import Key, draws, key
from cdmae.masking.strategies._top import budget

if TYPE_CHECKING:
    from cdmae.tokens.corpus import Tokens
    from cdmae.tokens.vocabulary import Vocabulary

__all__ = [
    "DELETE", "PLAIN", "SAMPLE", "SELECT", "TYPO", "Batch", "Side", "corrupt", "encoder_side",
    "hide", "key", "mask", "read", "read_spans", "sides", "strategy", "values",
]  # fmt: skip

SELECT, CORRUPT, SAMPLE, DELETE, TYPO = 1, 2, 3, 4, 5  # salts of the random streams
MOST = 1 << 16  # positions of a passage for which `hide` has distinct random streams
CELLS_AT_ONCE = 1 << 20  # cells of the masks per position that `hide` computes together: a few MB
# The upper half of a draw decides whether a token is replaced, the lower half selects the token.
LOWER = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Batch:
    """Passages to be masked, padded."""

    ids: np.ndarray  # int32 [B, n], 0 where padded
    lengths: np.ndarray  # int64 [B]
    rows: np.ndarray  # int64 [B], row numbers in the collection
    word_starts: np.ndarray  # bool [B, n]
    candidates: np.ndarray  # bool [B, n], neither padding nor a special token
    importance: np.ndarray | None = None  # float32 [B, n], the `values` of the strategy


@dataclass(frozen=True)
class Side:
    """How the input of the encoder or the decoder is masked.

    The last fourteen fields serve objectives with masks that differ from equation 1.
    """

    strategy: str
    ratio: float | np.ndarray  # share of the candidates (p_enc, p_dec), of each passage if [B]
    sigma: float = 1.0  # standard deviation of the noise on the importance, in nats
    unit: str = "word"  # or `wordpiece`: the unit that shares one draw of noise
    mask_share: float = 0.8  # of the masked tokens, replaced by [MASK]
    random_share: float = 0.1  # of the masked tokens, replaced by a random token; the rest is kept
    beyond: str = ""  # another side: its masked tokens are also masked here, and count in `ratio`
    complement: str = ""  # another side: exactly the tokens that it does not mask are masked here
    per_position: bool = False  # the input is not masked; each position has its own attention mask
    next: bool = False  # the input is the second of two spans; the encoder reads the first
    sampled: bool = False  # every token gets a number in [0, 1) for sampling its replacement
    spans: int = 1  # consecutive spans per passage
    # shortest and longest share of the passage: two independent crops instead of spans, in which
    # nothing is predicted
    crops: tuple[float, float] | None = None
    deleted: float = 0.0  # share of the word-pieces of a crop that are deleted
    rest: bool = False  # the second crop is the passage without the first crop
    written: int = 0  # the input is the passage's text of this file of written texts, from 1
    misspelt: float = 0.0  # the probability with which this input has a word misspelt
    spelt: float = 0.0  # words that another side misspells with this probability are masked first
    draws: str = ""  # another side: the strategy draws words in the same order for both
    crop: int = 0  # with one span per passage: the crop that this side reads, 0 or 1


PLAIN = Side("", 0.0)  # the input is the text itself, and every token is predicted


def encoder_side(settings: Any, unit: str = "word") -> Side:
    """Return the encoder side for the given settings; `unit`: the unit of the importance."""
    return Side(
        settings.encoder_masking,
        settings.encoder_ratio,
        sigma=settings.sigma,
        unit=unit,
        mask_share=settings.mask_share,
        random_share=settings.random_share,
    )


def sides(settings: Any, unit: str = "word") -> dict[str, Side]:
    """Return the sides ``encoder`` and ``decoder``, each with its own strategy and ratio."""
    encoder = encoder_side(settings, unit)
    decoder = replace(encoder, strategy=settings.decoder_masking, ratio=settings.decoder_ratio)
    return {"encoder": encoder, "decoder": decoder}


def strategy(name: str) -> ModuleType:
    """Return the module of a strategy; the config check has already rejected unknown names."""
    return importlib.import_module(f"{__name__}.strategies.{name}")


def values(names: Iterable[str], tokens: Tokens, importance: Path | None) -> dict[str, np.ndarray]:
    """Compute a value per word-piece, float16 [T], for each strategy that needs values.

    importance: the folder of importance values, for strategies that need it. Raises `InputError` if
    it is missing.
    """
    modules = {name: strategy(name) for name in dict.fromkeys(names)}
    return {
        name: module.values(tokens, importance)
        for name, module in modules.items()
        if hasattr(module, "values")
    }


def read(
    tokens: Tokens,
    rows: np.ndarray,
    length: int,
    vocabulary: Vocabulary,
    importance: np.ndarray | None = None,
) -> Batch:
    """Read the passages `rows`, cut to `length` word-pieces; `importance` is float16 [T]."""
    rows = np.asarray(rows, dtype=np.int64)
    starts = tokens.starts[rows]
    lengths = np.minimum(tokens.starts[rows + 1] - starts, length)
    return read_spans(tokens, rows, starts, lengths, vocabulary, importance)


def read_spans(
    tokens: Tokens,
    rows: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    vocabulary: Vocabulary,
    importance: np.ndarray | None = None,
) -> Batch:
    """Read the word-pieces ``starts .. starts + lengths``; `rows` select the random draws."""
    shape = (len(rows), int(lengths.max(initial=0)))
    ids = np.zeros(shape, np.int32)
    word_starts = np.zeros(shape, bool)
    candidates = np.zeros(shape, bool)
    pieces = np.asarray(tokens.ids)
    _read(
        pieces,
        starts,
        lengths,
        vocabulary.word_starts,
        vocabulary.special,
        ids,
        word_starts,
        candidates,
    )
    values = None
    if importance is not None:
        halves = np.zeros(shape, np.uint16)
        _gather(np.asarray(importance, np.float16).view(np.uint16), starts, lengths, halves)
        values = halves.view(np.float16).astype(np.float32)
    return Batch(ids, lengths, rows, word_starts, candidates, values)


@compiled
def _read(tokens, starts, lengths, begins, special, ids, word_starts, candidates):  # noqa: ANN001, ANN202
    for passage in range(len(starts)):
        for position in range(lengths[passage]):
            token = tokens[starts[passage] + position]
            ids[passage, position] = token
            word_starts[passage, position] = begins[token] or position == 0
            candidates[passage, position] = not special[token]


@compiled
def _gather(values, starts, lengths, into):  # noqa: ANN001, ANN202
    for passage in range(len(starts)):
        for position in range(lengths[passage]):
            into[passage, position] = values[starts[passage] + position]


def mask(
    batch: Batch, side: Side, vocabulary: Vocabulary, key: Key, first: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return a side's input, int32 [B, n], and the tokens it predicts, bool [B, n] (equation 1).

    first: tokens that are masked in any case, bool [B, n]; the strategy draws as many of the others
    as the side's ratio leaves. If the input has misspelt words, these are `first`: they are neither
    masked nor counted.
    """
    select = strategy(side.strategy).select
    if first is None:
        chosen = select(batch, side, key)
    else:
        others = replace(batch, candidates=batch.candidates & ~first)
        left = budget(batch.candidates, side.ratio)
        if not side.misspelt:
            left -= (batch.candidates & first).sum(axis=1)
        share = np.clip(left / np.maximum(1, others.candidates.sum(axis=1)), 0, 1)
        chosen = select(others, replace(side, ratio=share), key)
        if not side.misspelt:
            chosen |= first
    return corrupt(batch, chosen, side, vocabulary, key), chosen


def hide(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Draw for each position the tokens hidden from it: bool [B, n, n] (RetroMAE, section 3.2).

    ``[b, i]`` is the mask of position i of passage b: position i itself and the tokens that the
    side's strategy draws for this position alone, the same number in every mask of the passage.
    """
    passages, length = batch.ids.shape
    hidden = np.empty((passages * length, length), bool)
    arrays = {name: value for name, value in vars(batch).items() if value is not None}
    at_once = max(1, CELLS_AT_ONCE // max(1, length))
    for first in range(0, len(hidden), at_once):
        last = min(first + at_once, len(hidden))
        passage, position = np.divmod(np.arange(first, last), length)
        repeated = {name: value[passage] for name, value in arrays.items()}
        repeated["rows"] = repeated["rows"] * MOST + position
        keys = np.full(passages, key, np.uint64)[passage]
        hidden[first:last] = strategy(side.strategy).select(Batch(**repeated), side, keys)
    hidden = hidden.reshape(passages, length, length)
    hidden[:, np.arange(length), np.arange(length)] = True
    return hidden


def corrupt(
    batch: Batch, chosen: np.ndarray, side: Side, vocabulary: Vocabulary, key: Key
) -> np.ndarray:
    """Replace `mask_share` of the chosen tokens by [MASK] and `random_share` by random tokens.

    Random tokens are drawn from the non-special vocabulary. The other chosen tokens are kept.
    """
    inputs = batch.ids.copy()
    bits = draws(key, batch.rows, batch.ids.shape[1], salt=CORRUPT)
    ordinary = vocabulary.ordinary.astype(np.int32, copy=False)
    replaced = side.mask_share + side.random_share
    _corrupt(inputs, chosen, bits, vocabulary.mask_id, ordinary, side.mask_share, replaced)
    return inputs


@compiled
def _corrupt(inputs, chosen, draws, mask_id, ordinary, mask_share, both_shares):  # noqa: ANN001, ANN202
    # Without branches: the processor would mispredict a branch on `chosen` half the time.
    masked = np.uint64(mask_share * 2.0**32)
    replaced = np.uint64(both_shares * 2.0**32)
    for passage in range(len(inputs)):
        tokens = inputs[passage]
        predicted = chosen[passage]
        bits = draws[passage]
        for position in range(len(tokens)):
            share = bits[position] >> np.uint64(32)
            other = ordinary[(bits[position] & LOWER) * np.uint64(len(ordinary)) >> np.uint64(32)]
            other = other if share < replaced else tokens[position]
            other = np.int32(mask_id) if share < masked else other
            tokens[position] = other if predicted[position] else tokens[position]
