"""Describe masked words: the most frequent, the share of stop-words, and one example in detail.

Section 3.2 of the paper: 40 % of the tokens masked at random are stop-words or punctuation.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cdmae import masking
from cdmae.importance import ami
from cdmae.importance.shading import spell
from cdmae.stop_words import STOP_WORDS
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.tokenise import tokenise
from cdmae.tokens.vocabulary import Vocabulary, read_pieces

SAMPLE = 20_000  # number of passages that are masked
DRAWS = 2_000  # masks of the example: the standard error of a share is about 0.01
SIGMAS = (0.0, 1.0, 2.0, 4.0, math.inf)
TOP = 10
PASSAGES = 3  # passages of the collection that are shown with their masks
WORDS = 25  # words of such a passage, at least


def describe(
    tokens: Tokens,
    tokenizer: Path | str,
    importance_folder: Path | str,
    *,
    settings: dict[str, Any],
    seed: int,
    example: str,
) -> dict[str, Any]:
    """Describe the decoder's importance-based masks, and uniform masks with the same ratio.

    The result has these keys:

    ``uniform``, ``importance``: three facts about the masks. The most frequent masked words and
    their share of the masked words; the share of stop-words and punctuation among the masked
    word-pieces; the entropy of the masked word-pieces in bits.

    ``sigma``: for each standard deviation of the noise, the same share and entropy, and the share
    of masked word-pieces that the next epoch masks again.

    ``example``: its words with their importance, the share of their n-grams that the collection
    repeats, and the probability that each is masked.

    ``passages``: a few passages of the collection, each with its words, their importance, and the
    indices of the words that the decoder must restore in each of the first two epochs.
    """
    vocabulary = Vocabulary.read(tokenizer)
    pieces = read_pieces(tokenizer)
    table = ami.Table.read(importance_folder)
    values = ami.read_values(importance_folder)
    side = masking.Side(
        strategy="importance",
        ratio=settings["decoder_ratio"],
        sigma=settings["sigma"],
        unit=table.ngrams.unit,
    )
    evenly = np.linspace(0, max(0, len(tokens) - 1), SAMPLE).astype(np.int64)
    rows = np.unique(evenly)[: len(tokens)]
    batch = masking.read(tokens, rows, settings["max_length"] - 2, vocabulary, values)
    stop = np.array([_is_stop_word(piece) for piece in pieces])

    def select(epoch: int = 0, **changed: Any) -> np.ndarray:
        return _select(batch, replace(side, **changed), seed, epoch)

    def share(mask: np.ndarray) -> float:
        return round(float((stop[batch.ids] & whole)[mask].mean()), 4) if mask.any() else 0.0

    ends = _ends(batch)
    # A stop-word is a whole word; the "a" of "aorta" is not a stop-word.
    whole = batch.word_starts & (ends == np.arange(1, batch.ids.shape[1] + 1))
    described = {}
    for name in ("uniform", "importance"):
        mask = select(strategy=name)
        described[name] = {
            "top": _top(batch, mask, ends, pieces),
            "stop_word_share": share(mask),
            "entropy": _entropy(batch.ids[mask]),
        }
    noise = {}
    for sigma in sorted({*SIGMAS, side.sigma}):
        first = select(0, sigma=sigma)
        second = select(1, sigma=sigma)
        noise[f"{sigma:g}"] = {
            "stop_word_share": share(first),
            "overlap": round(float((first & second).sum() / max(1, first.sum())), 4),
            "entropy": _entropy(batch.ids[first]),
        }
    drawn = [
        _passage(batch, at, [select(epoch)[at] for epoch in range(2)], pieces)
        for at in _typical(batch)
    ]
    shaded = _example(example, tokenizer, vocabulary, pieces, table, side, seed)
    return {**described, "sigma": noise, "example": shaded, "passages": drawn}


def _typical(batch: masking.Batch) -> list[int]:
    """Choose passages across the collection: in each part, the first passage with enough words."""
    words = batch.word_starts.sum(axis=1)
    chosen = []
    for part in np.array_split(np.arange(len(words)), PASSAGES):
        if len(part):
            long = part[words[part] >= WORDS]
            chosen.append(int(long[0] if len(long) else part[words[part].argmax()]))
    return chosen


def _passage(
    batch: masking.Batch, at: int, masks: list[np.ndarray], pieces: list[str]
) -> dict[str, Any]:
    """Describe a passage: its words, their importance, and the masked words of each epoch."""
    ids = batch.ids[at, : batch.lengths[at]]
    begins = np.flatnonzero(batch.word_starts[at])
    values = batch.importance[at][begins]
    return {
        "words": [spell(word, pieces) for word in np.split(ids, begins[1:])] if len(ids) else [],
        "importance": [round(float(value), 2) for value in values],
        "masked": [np.flatnonzero(mask[begins]).tolist() for mask in masks],
    }


def _is_stop_word(piece: str) -> bool:
    """Return whether a word-piece is a stop-word or punctuation."""
    return piece in STOP_WORDS or not any(map(str.isalnum, piece))


def _select(batch: masking.Batch, side: masking.Side, seed: int, epoch: int = 0) -> np.ndarray:
    return masking.strategy(side.strategy).select(batch, side, masking.key(seed, "decoder", epoch))


def _ends(batch: masking.Batch) -> np.ndarray:
    """Return the end of the word that each word-piece belongs to, exclusive: int64 [B, n]."""
    positions = np.arange(batch.ids.shape[1] + 1)
    beyond = positions >= batch.lengths[:, None]
    begins = np.pad(batch.word_starts, ((0, 0), (0, 1))) | beyond
    nearest = np.where(begins, positions, len(positions))[:, ::-1]
    return np.minimum.accumulate(nearest, axis=1)[:, -2::-1]


def _entropy(ids: np.ndarray) -> float:
    """Return the entropy of a distribution of word-pieces, in bits."""
    counts = np.unique(ids, return_counts=True)[1]
    p = counts / max(1, counts.sum())
    return round(float(-(p * np.log2(p)).sum()), 3)


def _top(
    batch: masking.Batch, mask: np.ndarray, ends: np.ndarray, pieces: list[str]
) -> list[list[Any]]:
    """Return the words with the most frequently masked first pieces, and their shares."""
    rows, begins = np.nonzero(mask & batch.word_starts)
    words = zip(rows.tolist(), begins.tolist(), ends[rows, begins].tolist(), strict=True)
    counts = Counter(tuple(batch.ids[row, begin:end].tolist()) for row, begin, end in words)
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    return [[spell(word, pieces), round(count / len(rows), 4)] for word, count in best]


def _example(
    text: str,
    tokenizer: Path | str,
    vocabulary: Vocabulary,
    pieces: list[str],
    table: ami.Table,
    side: masking.Side,
    seed: int,
) -> dict[str, list[Any]]:
    tokens = tokenise(pa.table({"title": [""], "text": [text]}), tokenizer, 1)
    ids = np.asarray(tokens.ids)
    if not len(ids):
        return {"words": [], "importance": [], "seen": [], "uniform": [], "importance_aware": []}
    values = table.score(ids, vocabulary)
    one = masking.read(tokens, np.array([0]), len(ids), vocabulary, values)
    repeated = {name: np.repeat(array, DRAWS, axis=0) for name, array in vars(one).items()}
    many = masking.Batch(**repeated | {"rows": np.arange(DRAWS)})
    begins = np.flatnonzero(one.word_starts[0])

    def shares(strategy: str) -> list[float]:
        masked = _select(many, replace(side, strategy=strategy), seed).mean(axis=0)
        lengths = np.diff(begins, append=len(ids))
        return (np.add.reduceat(masked, begins) / lengths).round(4).tolist()

    return {
        "words": [spell(word, pieces) for word in np.split(ids, begins[1:])],
        "importance": [round(float(value), 4) for value in values[begins]],
        "seen": table.seen(ids, vocabulary)[begins].round(4).tolist(),
        "uniform": shares("uniform"),
        "importance_aware": shares("importance"),
    }
