"""Masking (equation 1): choose the word-pieces to predict, and make the masked input.

The folder `strategies` has one file per strategy, named as in the config, unless its name begins
with ``_``. Such a file has

- ``select(batch, side, key)``, which returns the word-pieces to mask, bool [B, n]: ``batch.k[b]``
  of the ``batch.candidates`` of passage b;
- perhaps ``values(corpus)``: a number for each word-piece of the collection, float16 [T], from what
  `Corpus` knows about it. It is computed once, and `select` finds it in ``batch.values``;
- ``IN_WORDS``, which describes the masked words in model cards, and perhaps ``READS``, the settings
  that the strategy needs (`cdmae.config.maskings`).

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
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.masking.noise import Key, draws, key
from cdmae.masking.passages import Batch, Corpus, pad, read

if TYPE_CHECKING:
    from cdmae.tokens.vocabulary import Vocabulary

__all__ = [
    "PLAIN", "SELECT", "Batch", "Corpus", "Side", "choose", "corrupt", "key", "mask", "pad", "read",
]  # fmt: skip

SELECT, CORRUPT = 1, 2  # salts of the random streams; objectives have 3 and 4
# The upper half of a draw decides whether a token is replaced, the lower half selects the token.
HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)


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
    k = budget(batch.candidates, side.ratio)
    if first is None:
        return draw(batch, side, key, k)
    others = replace(batch, candidates=batch.candidates & ~first)
    return draw(others, side, key, k - (batch.candidates & first).sum(axis=1)) | first


def budget(candidates: np.ndarray, ratio: float) -> np.ndarray:
    """Return k for the candidates of each passage, bool [B, n]: int64 [B]."""
    # The small term corrects rounding: 0.29 x 100 is 28.999999999999996 in floating point.
    return np.floor(candidates.sum(axis=1) * ratio + 1e-9).astype(np.int64)


def draw(batch: Batch, side: Side, key: Key, k: np.ndarray) -> np.ndarray:
    """Choose `k` [B] of the candidates by the side's strategy, or all if there are fewer."""
    k = np.clip(k, 0, batch.candidates.sum(axis=1))
    return strategy(side.strategy).select(replace(batch, k=k), side, key)


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

    Raises `InputError` if the corpus lacks what a strategy needs.
    """
    modules = {name: strategy(name) for name in dict.fromkeys(names)}
    return {
        name: module.values(corpus) for name, module in modules.items() if hasattr(module, "values")
    }
