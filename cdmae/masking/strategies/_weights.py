"""Words drawn one after another without replacement, each with a probability in proportion to its weight."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import Threads, compiled
from cdmae.importance import ami, ngrams
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import UNIT, Key, draws
from cdmae.masking.strategies._top import budget, top
from cdmae.tokens.corpus import Tokens


def weighted(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces, in words drawn by their weights: bool [B, n].

    ``batch.importance`` holds the logarithms of the weights. With Gumbel noise added to them the k highest are a sample
    without replacement (Efraimidis and Spirakis 2006; Vieira 2014). A word's pieces share their noise, so that at most
    one word is masked in part.
    """
    noise = np.empty(batch.ids.shape, np.float32)
    bits = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    _perturb(bits, batch.importance, batch.word_starts, batch.candidates, noise)
    return top(noise, budget(batch.candidates, side.ratio))


@compiled
def _perturb(draws, weights, word_starts, candidates, noise):  # noqa: ANN001, ANN202
    for passage in range(len(noise)):
        shared = 0.0
        for place in range(noise.shape[1]):
            if word_starts[passage, place] or place == 0:
                uniform = (np.float64(draws[passage, place] >> np.uint64(11)) + 0.5) * UNIT
                shared = -np.log(-np.log(uniform))
            value = np.float32(weights[passage, place] + shared)
            noise[passage, place] = value if candidates[passage, place] else np.float32(-np.inf)


def frequencies(tokens: Tokens) -> np.ndarray:
    """Count how often the collection has each of its words, in the order of the text: int64 [W]."""
    with Threads(1) as pool:
        words, _, _ = ngrams.words_of(tokens, "word", pool)
    return np.bincount(words)[words]


def document_frequencies(tokens: Tokens) -> np.ndarray:
    """Count how many passages have each of the collection's words, in the order of the text: int64 [W]."""
    with Threads(1) as pool:
        words, segments, _ = ngrams.words_of(tokens, "word", pool)
    passages_with = np.zeros(int(words.max(initial=0)) + 1, np.int64)
    _count_passages(words, segments[::2].copy(), np.full(len(passages_with), -1, np.int64), passages_with)
    return passages_with[words]


def spread(logarithms: np.ndarray, tokens: Tokens) -> np.ndarray:
    """Return the logarithms of the words' weights [W], for each of their word-pieces: float16 [T]."""
    return ami.broadcast(logarithms, tokens, "word")


@compiled
def _count_passages(words, passages, last, passages_with):  # noqa: ANN001, ANN202
    for passage in range(len(passages) - 1):
        for place in range(passages[passage], passages[passage + 1]):
            word = words[place]
            passages_with[word] += last[word] != passage
            last[word] = passage
