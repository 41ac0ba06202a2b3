"""Describe masked words: the most frequent, the share of stop-words, and one example in detail.

Section 3.2 of the paper: 40 % of the tokens masked at random are stop-words or punctuation.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cdmae import masking
from cdmae.importance import ami
from cdmae.importance.shading import spell
from cdmae.masking import Batch, Corpus, Side
from cdmae.stop_words import STOP_WORDS
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.tokenise import tokenise
from cdmae.tokens.vocabulary import Vocabulary

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
    """Describe the masks of a strategy that reads the importance, and uniform masks beside them.

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
    corpus = Corpus(tokens, Vocabulary.read(tokenizer), tokenizer, importance_folder)
    side = Side(settings["strategy"], settings["ratio"], sigma=settings["sigma"], unit=corpus.unit)
    uniform = replace(side, strategy="uniform")
    evenly = np.linspace(0, max(0, len(tokens) - 1), SAMPLE).astype(np.int64)
    rows = np.unique(evenly)[: len(tokens)]
    length = settings["max_length"] - 2
    words = _Words(_batch(corpus, rows, length, side), corpus.pieces)
    noise = {}
    for sigma in sorted({*SIGMAS, side.sigma}):
        first, second = (
            _choose(words.batch, replace(side, sigma=sigma), seed, epoch) for epoch in range(2)
        )
        noise[f"{sigma:g}"] = {
            "stop_word_share": words.stop_word_share(first),
            "overlap": round(float((first & second).sum() / max(1, first.sum())), 4),
            "entropy": words.entropy(first),
        }
    masks = [_choose(words.batch, side, seed, epoch) for epoch in range(2)]
    return {
        "uniform": words.facts(_choose(words.batch, uniform, seed)),
        "importance": words.facts(masks[0]),
        "sigma": noise,
        "example": _example(example, corpus, side, seed),
        "passages": [words.passage(at, masks) for at in words.typical()],
    }


def _batch(corpus: Corpus, rows: np.ndarray, length: int, side: Side) -> Batch:
    values = masking.values([side.strategy], corpus).get(side.strategy)
    return masking.read(corpus.tokens, rows, length, corpus.vocabulary, values)


def _choose(batch: Batch, side: Side, seed: int, epoch: int = 0) -> np.ndarray:
    return masking.choose(batch, side, masking.key(seed, "decoder", epoch))


@dataclass(frozen=True)
class _Words:
    """The words of many passages, and facts about masks of them, bool [B, n]."""

    batch: Batch
    pieces: list[str]

    def facts(self, mask: np.ndarray) -> dict[str, Any]:
        """Return the most frequent words, the share of stop-words, and the entropy."""
        return {
            "top": self.top(mask),
            "stop_word_share": self.stop_word_share(mask),
            "entropy": self.entropy(mask),
        }

    def spans(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where each word begins and ends among all real word-pieces."""
        begins = np.flatnonzero(self.batch.word_starts[self.batch.real])
        return begins, np.append(begins[1:], self.batch.lengths.sum())

    def top(self, mask: np.ndarray) -> list[list[Any]]:
        """Return the words with the most frequently masked first pieces, and their shares."""
        ids = self.batch.ids[self.batch.real]
        begins, ends = self.spans()
        masked = mask[self.batch.real][begins]
        words = zip(begins[masked].tolist(), ends[masked].tolist(), strict=True)
        counts = Counter(tuple(ids[begin:end].tolist()) for begin, end in words)
        best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
        total = counts.total()
        return [[spell(word, self.pieces), round(count / total, 4)] for word, count in best]

    def stop_word_share(self, mask: np.ndarray) -> float:
        """Return the share of stop-words and punctuation among the masked word-pieces."""
        is_stop_word = np.array(
            [piece in STOP_WORDS or not any(map(str.isalnum, piece)) for piece in self.pieces]
        )
        found = is_stop_word[self.batch.ids[self.batch.real]]
        begins, ends = self.spans()
        # A stop-word is a whole word; the "a" of "aorta" is not a stop-word.
        whole = np.zeros(len(found), bool)
        whole[begins] = ends - begins == 1
        masked = mask[self.batch.real]
        return round(float((found & whole)[masked].mean()), 4) if masked.any() else 0.0

    def entropy(self, mask: np.ndarray) -> float:
        """Return the entropy of the masked word-pieces, in bits."""
        counts = np.unique(self.batch.ids[mask], return_counts=True)[1]
        p = counts / max(1, counts.sum())
        return round(float(-(p * np.log2(p)).sum()), 3)

    def typical(self) -> list[int]:
        """Choose passages across the collection: of each part, the first with enough words."""
        words = self.batch.word_starts.sum(axis=1)
        chosen = []
        for part in np.array_split(np.arange(len(words)), PASSAGES):
            if len(part):
                long = part[words[part] >= WORDS]
                chosen.append(int(long[0] if len(long) else part[words[part].argmax()]))
        return chosen

    def passage(self, at: int, masks: list[np.ndarray]) -> dict[str, Any]:
        """Describe a passage: its words, their importance, and the masked words of each epoch."""
        batch = self.batch
        begins = np.flatnonzero(batch.word_starts[at])
        return {
            "words": _spelt(batch.ids[at, : batch.lengths[at]], begins, self.pieces),
            "importance": [round(float(value), 2) for value in batch.values[at][begins]],
            "masked": [np.flatnonzero(mask[at][begins]).tolist() for mask in masks],
        }


def _spelt(ids: np.ndarray, begins: np.ndarray, pieces: list[str]) -> list[str]:
    return [spell(word, pieces) for word in np.split(ids, begins[1:])] if len(ids) else []


def _example(text: str, corpus: Corpus, side: Side, seed: int) -> dict[str, list[Any]]:
    """Describe a sentence: its words, and the probability that each kind of mask hides them."""
    tokens = tokenise(pa.table({"title": [""], "text": [text]}), corpus.tokenizer, 1)
    ids = np.asarray(tokens.ids)
    if not len(ids):
        return {"words": [], "importance": [], "seen": [], "uniform": [], "importance_aware": []}
    table = ami.Table.read(corpus.estimate)
    scores = table.score(ids, corpus.vocabulary)
    sentence = replace(corpus, tokens=tokens, scores=scores.astype(np.float16))
    many = replace(_batch(sentence, np.zeros(DRAWS), len(ids), side), rows=np.arange(DRAWS))
    begins = np.flatnonzero(many.word_starts[0])
    lengths = np.diff(begins, append=len(ids))

    def shares(strategy: str) -> list[float]:
        masked = _choose(many, replace(side, strategy=strategy), seed).mean(axis=0)
        return (np.add.reduceat(masked, begins) / lengths).round(4).tolist()

    return {
        "words": _spelt(ids, begins, corpus.pieces),
        "importance": [round(float(value), 4) for value in scores[begins]],
        "seen": table.seen(ids, corpus.vocabulary)[begins].round(4).tolist(),
        "uniform": shares("uniform"),
        "importance_aware": shares(side.strategy),
    }
