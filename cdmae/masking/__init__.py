"""Masking (equation 1): which word-pieces of a passage a side of the model must predict, and what it sees instead.

One file per strategy; its name is its name in the config (`encoder_masking`, `decoder_masking`), and it defines
``select(batch, side, key) -> bool [B, n]``. A file whose name begins with ``_`` is no strategy.

Every draw depends on (seed, side, epoch) through the key, on the passage's row and on the position, and on nothing
else: a passage is masked alike in whatever batch, process or order it comes.

B passages, n the longest one's word-pieces (without [CLS] and [SEP]).
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.compiled import compiled
from cdmae.errors import InputError
from cdmae.noise import bits, key, stream, uniform

if TYPE_CHECKING:
    from cdmae.files import Tokens
    from cdmae.tokens import Vocabulary

__all__ = ["Batch", "Side", "corrupt", "key", "mask", "read", "sides", "strategies", "strategy"]

SELECT, CORRUPT = 1, 2  # salts of the streams


@dataclass(frozen=True)
class Batch:
    """Passages to be masked, padded.

    ids int32 [B, n] (0 where padded); lengths int64 [B]; rows int64 [B]: the passages' row numbers in the collection;
    word_starts bool [B, n]; candidates bool [B, n]: neither padding nor a special token; importance float32 [B, n].
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
    """

    strategy: str
    ratio: float
    sigma: float = 1.0
    unit: str = "word"
    mask_share: float = 0.8
    random_share: float = 0.1


def sides(settings: Any, unit: str = "word") -> tuple[Side, Side]:
    """The encoder's and the decoder's side of an encoder's settings; `unit` is the importance's."""
    shares = {"mask_share": settings.mask_share, "random_share": settings.random_share}
    return (
        Side(settings.encoder_masking, settings.encoder_ratio, settings.sigma, unit, **shares),
        Side(settings.decoder_masking, settings.decoder_ratio, settings.sigma, unit, **shares),
    )


def strategies() -> list[str]:
    """The names of the strategies: the files of this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def strategy(name: str) -> ModuleType:
    """The module of a strategy; raises `InputError` for an unknown name."""
    if name not in strategies():
        raise InputError(f"masking is {name!r}; allowed: {', '.join(strategies())}")
    return importlib.import_module(f"{__name__}.{name}")


def read(
    tokens: Tokens, rows: np.ndarray, length: int, vocabulary: Vocabulary, importance: np.ndarray | None = None
) -> Batch:
    """The passages `rows` of a collection, cut to `length` word-pieces, with their `importance` (float16 [T])."""
    rows = np.asarray(rows, dtype=np.int64)
    starts = tokens.starts[rows]
    lengths = np.minimum(tokens.starts[rows + 1] - starts, length)
    shape = len(rows), int(lengths.max(initial=0))
    real = np.arange(shape[1]) < lengths[:, None]
    places = np.concatenate([np.arange(a, a + m) for a, m in zip(starts, lengths, strict=True)] or [np.empty(0, int)])
    ids = np.zeros(shape, np.int32)
    ids[real] = tokens.ids[places]
    values = None
    if importance is not None:
        values = np.zeros(shape, np.float32)
        values[real] = importance[places]
    word_starts = vocabulary.word_starts[ids]
    word_starts[:, :1] = True
    return Batch(ids, lengths, rows, word_starts, real & ~vocabulary.special[ids], values)


def mask(batch: Batch, side: Side, vocabulary: Vocabulary, key: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Equation 1: what a side sees, int32 [B, n], and which of the original tokens it must predict, bool [B, n]."""
    chosen = strategy(side.strategy).select(batch, side, key)
    return corrupt(batch, chosen, side, vocabulary, key), chosen


def corrupt(batch: Batch, chosen: np.ndarray, side: Side, vocabulary: Vocabulary, key: np.uint64) -> np.ndarray:
    """Replace the `chosen` tokens: `mask_share` of them by [MASK], `random_share` by any ordinary token, else kept."""
    inputs = batch.ids.copy()
    _corrupt(
        inputs, chosen, batch.rows, key, vocabulary.mask_id, vocabulary.ordinary, side.mask_share, side.random_share
    )
    return inputs


@compiled
def _corrupt(inputs, chosen, rows, key, mask_id, ordinary, mask_share, random_share):  # noqa: ANN001, ANN202
    for passage in range(inputs.shape[0]):
        state = stream(key, rows[passage], CORRUPT)
        for place in range(inputs.shape[1]):
            if chosen[passage, place]:
                draw = uniform(bits(state, 2 * place))
                if draw < mask_share:
                    inputs[passage, place] = mask_id
                elif draw < mask_share + random_share:
                    other = uniform(bits(state, 2 * place + 1))
                    inputs[passage, place] = ordinary[np.int64(other * len(ordinary))]
