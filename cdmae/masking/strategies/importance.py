"""Algorithm 1: perturb each word's importance by Gaussian noise and mask the k highest."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.compiled import compiled
from cdmae.errors import InputError
from cdmae.importance import ami as estimated
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import Key, normals
from cdmae.masking.strategies._top import budget, top
from cdmae.tokens.corpus import Tokens


def values(tokens: Tokens, importance: Path | None) -> np.ndarray:
    """Read the importance of each word-piece, estimated by the rule `importance`: float16 [T]."""
    if importance is None:
        raise InputError(
            "masking by importance needs values of importance; name an entry of `importance`"
        )
    importances = estimated.read_values(importance)
    if len(importances) != len(tokens.ids):
        raise InputError(
            f"{importance} has {len(importances):,} values for {len(tokens.ids):,} word-pieces; "
            "delete it and run again"
        )
    return importances


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask the floor(p x n) word-pieces with the highest perturbed importance: bool [B, n].

    If sigma is 0, these are the most important tokens. If sigma is infinite, importance has no
    effect. With `side.unit` `word` the pieces of a word share its noise, and at most one word of a
    passage is masked in part.
    """
    perturbed = perturb(batch, side.sigma, side.unit, key)
    return top(perturbed, budget(batch.candidates, side.ratio))


def perturb(batch: Batch, sigma: float, unit: str, key: Key) -> np.ndarray:
    """Draw t ~ N(t, sigma) (Algorithm 1, lines 2 to 5).

    Returns float32 [B, n], minus infinity for special tokens and padding.
    """
    noise = normals(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    _perturb(
        batch.importance, batch.word_starts, batch.candidates, sigma, unit == "wordpiece", noise
    )
    return noise


@compiled
def _perturb(importance, word_starts, candidates, sigma, by_piece, noise):  # noqa: ANN001, ANN202
    scale = sigma
    weight = 1.0
    if np.isinf(sigma):
        scale = 1.0
        weight = 0.0
    for passage in range(len(noise)):
        shared = np.float32(0.0)
        for position in range(noise.shape[1]):
            own = by_piece or word_starts[passage, position]
            shared = noise[passage, position] if own else shared
            value = np.float32(weight * importance[passage, position] + scale * shared)
            noise[passage, position] = (
                value if candidates[passage, position] else np.float32(-np.inf)
            )
