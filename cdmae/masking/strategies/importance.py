"""Algorithm 1: perturb each word's importance by Gaussian noise and mask the k highest."""

from __future__ import annotations

import math

import numpy as np

from cdmae.masking import SELECT, Batch, Corpus, Side
from cdmae.masking.noise import Key, normals
from cdmae.masking.strategies._ranking import highest

READS = "importance"


def values(corpus: Corpus) -> np.ndarray:
    """Return the importance of each word-piece: float16 [T]."""
    return corpus.importance


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask the k word-pieces with the highest perturbed importance: bool [B, n].

    If sigma is 0, these are the most important tokens. If sigma is infinite, importance has no
    effect. With `side.unit` `word` the pieces of a word share its noise, and at most one word of a
    passage is masked in part.
    """
    return highest(batch, perturb(batch, side.sigma, side.unit, key))


def perturb(batch: Batch, sigma: float, unit: str, key: Key) -> np.ndarray:
    """Draw t ~ N(t, sigma) (Algorithm 1, lines 2 to 5): float32 [B, n]."""
    noise = normals(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    if unit == "word":
        noise = batch.of_words(noise)
    if math.isinf(sigma):
        return noise
    return (batch.values + sigma * noise.astype(np.float64)).astype(np.float32)
