"""Masking (equation 1): which word-pieces of a passage a side of the model must predict, and what it sees instead.

One file per strategy; its name is its name in the config (`encoder_masking`, `decoder_masking`), and it defines
``select(batch, side, key) -> bool [B, n]``. One that chooses by something it must know of each word-piece also defines
``values(tokens, importance) -> float16 [T]``, made once for the whole collection: `select` finds those of its passages
in ``batch.importance``. A file whose name begins with ``_`` is no strategy.

Every draw depends on (seed, side, epoch) through the key, on the passage's row and on the position, and on nothing
else: a passage is masked alike in whatever batch, process or order it comes.

B passages, n the longest one's word-pieces (without [CLS] and [SEP]).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking.noise import Key, draws, key

if TYPE_CHECKING:
    from cdmae.tokens.corpus import Tokens
    from cdmae.tokens.vocabulary import Vocabulary

__all__ = [
    "PLAIN", "SAMPLE", "Batch", "Side", "corrupt", "hide", "key", "mask", "read", "read_spans", "sides", "strategy",
    "values",
]  # fmt: skip

SELECT, CORRUPT, SAMPLE = 1, 2, 3  # salts of the streams
MOST = 1 << 16  # word-pieces of a passage that `hide` tells apart
CELLS_AT_ONCE = 1 << 20  # of the masks of single positions: some MB
LOWER = np.uint64(0xFFFFFFFF)  # the upper half of a draw tells whether to replace a token, the lower by what


@dataclass(frozen=True)
class Batch:
    """Passages to be masked, padded.

    ids int32 [B, n] (0 where padded); lengths int64 [B]; rows int64 [B]: the passages' row numbers in the collection;
    word_starts bool [B, n]; candidates bool [B, n]: neither padding nor a special token; importance float32 [B, n], or
    what else the strategy's `values` are.
    """

    ids: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    word_starts: np.ndarray
    candidates: np.ndarray
    importance: np.ndarray | None = None


@dataclass(frozen=True)
class Side:
    """How the encoder's or the decoder's input is masked.

    ratio: share of the candidates (p_enc, p_dec); sigma: standard deviation of the noise on the importance, in nats;
    unit: what gets one draw of noise, `word` or `wordpiece`; mask_share, random_share: of the masked tokens, those that
    become [MASK] and a random token; the others stay.

    Some objectives mask otherwise. beyond: all that this other side masks is masked here, too, and `ratio` counts it.
    per_position: the input stays as it is, and every position has a mask of its own, of what it must not see. next: the
    input is the other span where the encoder reads one of two. sampled: every token has a number in [0, 1) to sample
    its replacement by. spans: of each passage, one after the other. A `PLAIN` side is the text as it is, to be
    predicted whole.
    """

    strategy: str
    ratio: float
    sigma: float = 1.0
    unit: str = "word"
    mask_share: float = 0.8
    random_share: float = 0.1
    beyond: str = ""
    per_position: bool = False
    next: bool = False
    sampled: bool = False
    spans: int = 1


PLAIN = Side("", 0.0)


def sides(settings: Any, unit: str = "word") -> dict[str, Side]:
    """Return the ``encoder``'s and the ``decoder``'s side of an encoder's settings; `unit` is the importance's."""
    rest = settings.sigma, unit, settings.mask_share, settings.random_share
    return {
        "encoder": Side(settings.encoder_masking, settings.encoder_ratio, *rest),
        "decoder": Side(settings.decoder_masking, settings.decoder_ratio, *rest),
    }


def strategy(name: str) -> ModuleType:
    """Return the module of a strategy; the config has refused unknown names."""
    return importlib.import_module(f"{__name__}.strategies.{name}")


def values(names: Iterable[str], tokens: Tokens, importance: Path | None) -> dict[str, np.ndarray]:
    """Return what some strategies must know of each word-piece, float16 [T], by strategy; not those that know nothing.

    importance: the folder of an importance, for those that read one. Raises `InputError` where it is missing.
    """
    modules = {name: strategy(name) for name in dict.fromkeys(names)}
    return {name: module.values(tokens, importance) for name, module in modules.items() if hasattr(module, "values")}


def read(
    tokens: Tokens, rows: np.ndarray, length: int, vocabulary: Vocabulary, importance: np.ndarray | None = None
) -> Batch:
    """Read the passages `rows` of a collection, cut to `length` word-pieces, with their `importance` (float16 [T])."""
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
    """Word-pieces ``starts .. starts + lengths`` of a collection; their draws are those of the `rows`."""
    shape = len(rows), int(lengths.max(initial=0))
    ids, word_starts, candidates = np.zeros(shape, np.int32), np.zeros(shape, bool), np.zeros(shape, bool)
    arrays = np.asarray(tokens.ids), starts, lengths, vocabulary.word_starts, vocabulary.special
    _read(*arrays, ids, word_starts, candidates)
    values = None
    if importance is not None:
        halves = np.zeros(shape, np.uint16)
        _gather(np.asarray(importance, np.float16).view(np.uint16), starts, lengths, halves)
        values = halves.view(np.float16).astype(np.float32)
    return Batch(ids, lengths, rows, word_starts, candidates, values)


@compiled
def _read(tokens, starts, lengths, begins, special, ids, word_starts, candidates):  # noqa: ANN001, ANN202
    for passage in range(len(starts)):
        for place in range(lengths[passage]):
            token = tokens[starts[passage] + place]
            ids[passage, place] = token
            word_starts[passage, place] = begins[token] or place == 0
            candidates[passage, place] = not special[token]


@compiled
def _gather(values, starts, lengths, into):  # noqa: ANN001, ANN202
    for passage in range(len(starts)):
        for place in range(lengths[passage]):
            into[passage, place] = values[starts[passage] + place]


def mask(batch: Batch, side: Side, vocabulary: Vocabulary, key: Key) -> tuple[np.ndarray, np.ndarray]:
    """Equation 1: what a side sees, int32 [B, n], and which of the original tokens it must predict, bool [B, n]."""
    chosen = strategy(side.strategy).select(batch, side, key)
    return corrupt(batch, chosen, side, vocabulary, key), chosen


def hide(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Return what each position of a passage must not see, chosen for it alone by the side's strategy: bool [B, n, n].

    ``[b, i]`` is the mask of position i: as many tokens as in any mask of the passage, drawn anew, and itself.
    """
    passages, length = batch.ids.shape
    hidden = np.empty((passages * length, length), bool)
    arrays = {name: value for name, value in vars(batch).items() if value is not None}
    at_once = max(1, CELLS_AT_ONCE // max(1, length))
    for first in range(0, len(hidden), at_once):
        passage, position = np.divmod(np.arange(first, min(first + at_once, len(hidden))), length)
        repeated = {name: value[passage] for name, value in arrays.items()}
        repeated["rows"] = repeated["rows"] * MOST + position
        keys = np.full(passages, key, np.uint64)[passage]
        hidden[first : first + at_once] = strategy(side.strategy).select(Batch(**repeated), side, keys)
    hidden = hidden.reshape(passages, length, length)
    hidden[:, np.arange(length), np.arange(length)] = True
    return hidden


def corrupt(batch: Batch, chosen: np.ndarray, side: Side, vocabulary: Vocabulary, key: Key) -> np.ndarray:
    """Replace the `chosen` tokens: `mask_share` of them by [MASK], `random_share` by any ordinary token, else kept."""
    inputs = batch.ids.copy()
    bits = draws(key, batch.rows, batch.ids.shape[1], salt=CORRUPT)
    shares = side.mask_share, side.mask_share + side.random_share
    _corrupt(inputs, chosen, bits, vocabulary.mask_id, vocabulary.ordinary.astype(np.int32, copy=False), *shares)
    return inputs


@compiled
def _corrupt(inputs, chosen, draws, mask_id, ordinary, mask_share, both_shares):  # noqa: ANN001, ANN202
    # All places are drawn for, without a branch: one on what is chosen would be guessed wrong half the time.
    masked, replaced = np.uint64(mask_share * 2.0**32), np.uint64(both_shares * 2.0**32)
    for passage in range(len(inputs)):
        seen, predicted, bits = inputs[passage], chosen[passage], draws[passage]
        for place in range(len(seen)):
            share = bits[place] >> np.uint64(32)
            other = ordinary[(bits[place] & LOWER) * np.uint64(len(ordinary)) >> np.uint64(32)]
            other = other if share < replaced else seen[place]
            other = np.int32(mask_id) if share < masked else other
            seen[place] = other if predicted[place] else seen[place]
