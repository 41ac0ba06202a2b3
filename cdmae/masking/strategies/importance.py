"""Algorithm 1: perturb each word's importance by Gaussian noise, mask the k highest."""

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
    """Return the importance of each word-piece, as the rule `importance` estimated it: float16 [T]."""
    if importance is None:
        raise InputError("masking by importance needs the importance of the tokens; name one under `importance`")
    importances = estimated.read_values(importance)
    if len(importances) != len(tokens.ids):
        raise InputError(
            f"{importance} has {len(importances):,} values, the tokens are {len(tokens.ids):,} word-pieces"
        )
    return importances


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces, those of the highest perturbed importance: bool [B, n].

    With sigma = 0 the masks are the k most important tokens; with infinite sigma importance plays no part. A word's
    pieces share its noise (`side.unit` `word`), so that at most one word of a passage is masked in part.
    """
    return top(perturb(batch, side.sigma, side.unit, key), budget(batch.candidates, side.ratio))


def perturb(batch: Batch, sigma: float, unit: str, key: Key) -> np.ndarray:
    """Lines 2 to 5 of Algorithm 1, t ~ N(t, sigma): float32 [B, n], minus infinity for what is no candidate."""
    noise = normals(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    _perturb(batch.importance, batch.word_starts, batch.candidates, sigma, unit == "wordpiece", noise)
    return noise


@compiled
def _perturb(importance, word_starts, candidates, sigma, by_piece, noise):  # noqa: ANN001, ANN202
    scale, weight = (1.0, 0.0) if np.isinf(sigma) else (sigma, 1.0)
    for passage in range(len(noise)):
        shared = np.float32(0.0)
        for place in range(noise.shape[1]):
            shared = noise[passage, place] if by_piece or word_starts[passage, place] else shared
            value = np.float32(weight * importance[passage, place] + scale * shared)
            noise[passage, place] = value if candidates[passage, place] else np.float32(-np.inf)
