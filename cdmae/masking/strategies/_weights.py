"""Words drawn one after another without replacement, each with a probability in proportion to its weight."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.errors import InputError
from cdmae.importance import ami, ngrams
from cdmae.importance.counting import count_words, number_words
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import UNIT, draws
from cdmae.masking.strategies._top import budget, top
from cdmae.tokens.corpus import Tokens


def weighted(batch: Batch, side: Side, key: np.uint64) -> np.ndarray:
    """Mask floor(p x n) word-pieces, in words drawn by their weights: bool [B, n].

    ``batch.importance`` holds the logarithms of the weights. With Gumbel noise added to them the k highest are a sample
    without replacement (Efraimidis and Spirakis 2006; Vieira 2014). A word's pieces share their noise, so that at most
    one word is masked in part.
    """
    if batch.importance is None:
        raise InputError(f"masking by {side.strategy} needs the weights of the tokens")
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
    words, _ = _numbered(tokens)
    return np.bincount(words)[words]


def document_frequencies(tokens: Tokens) -> np.ndarray:
    """Count how many passages have each of the collection's words, in the order of the text: int64 [W]."""
    words, passages = _numbered(tokens)
    passages_with = np.zeros(int(words.max(initial=0)) + 1, np.int64)
    _count_passages(words, passages, np.full(len(passages_with), -1, np.int64), passages_with)
    return passages_with[words]


def spread(logarithms: np.ndarray, tokens: Tokens) -> np.ndarray:
    """Return the logarithms of the words' weights [W], for each of their word-pieces: float16 [T]."""
    return ami.broadcast(logarithms, tokens, "word")


def _numbered(tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Return the words as numbers uint32 [W], and where each passage begins among them, int64 [P + 1]."""
    ids, edges, pieces = np.asarray(tokens.ids), ngrams.segment_edges(tokens), len(tokens.word_starts)
    segments = np.zeros(len(edges), np.int64)
    count_words(ids, edges, 0, len(edges) - 1, tokens.word_starts, segments[1:])
    np.cumsum(segments, out=segments)
    words = np.empty(segments[-1], np.uint32)
    number_words(ids, edges, 0, len(edges) - 1, tokens.word_starts, pieces, segments, words)
    return words, segments[::2].copy()


@compiled
def _count_passages(words, passages, last, passages_with):  # noqa: ANN001, ANN202
    for passage in range(len(passages) - 1):
        for place in range(passages[passage], passages[passage + 1]):
            word = words[place]
            passages_with[word] += last[word] != passage
            last[word] = passage
