"""Counting n-grams: equal to a slow obvious counter, whatever the blocks and the memory."""

import itertools
import tracemalloc
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest

from cdmae.importance import ngrams
from cdmae.tokens import words as words_module
from cdmae.tokens.corpus import Tokens

PIECES = 12  # word-pieces 9, 10 and 11 continue a word
WORD_STARTS = np.array([True] * 9 + [False] * 3)


def tokens_of(passages, word_starts=WORD_STARTS):
    """Tokens from (title ids, text ids) per passage."""
    segments = [segment for passage in passages for segment in passage]
    lengths = np.array([len(segment) for segment in segments], np.int64)
    return Tokens.of(np.array([*itertools.chain(*segments)], np.uint16), lengths, word_starts)


def random_tokens(seed, passages=60):
    draw = np.random.default_rng(seed)
    shares = 1 / np.arange(1, PIECES + 1)

    def text():
        return draw.choice(PIECES, draw.integers(0, 25), p=shares / shares.sum()).tolist()

    return tokens_of([(text()[:4], text()) for _ in range(passages)])


def segments_of(tokens, unit="word"):
    """The words of every title and text, as tuples of word-pieces."""
    found = []
    for begin, end in itertools.pairwise(tokens.edges.tolist()):
        words = []
        for place, piece in enumerate(tokens.ids[begin:end].tolist()):
            if unit == "wordpiece" or place == 0 or tokens.word_starts[piece]:
                words.append((piece,))
            else:
                words[-1] += (piece,)
        found.append(words)
    return found


def naive(tokens, unit, window):
    """The counts [L, W] and the number of n-grams [L], with dictionaries of tuples."""
    counts = []
    totals = []
    for order in range(1, window + 1):
        grams = []
        for words in segments_of(tokens, unit):
            size = max(0, len(words) - order + 1)
            grams += [tuple(words[at : at + order]) for at in range(size)]
            grams += [None] * (len(words) - size)
        occurrences = Counter(filter(None, grams))
        counts.append([occurrences[gram] if gram else 0 for gram in grams])
        totals.append(occurrences.total())
    return np.array(counts), totals


def read_counts(folder):
    """What `count_to` wrote."""
    names = ("counts", "segments", "totals")
    return SimpleNamespace(**{name: np.load(folder / f"{name}.npy") for name in names})


def count(tokens, **how):
    with TemporaryDirectory() as folder:
        ngrams.count_to(Path(folder, "ngrams"), tokens, **how)
        return read_counts(Path(folder, "ngrams"))


def test_counts_of_a_text_by_hand():
    # Titles: "1", none. Texts: "1 2 1 2" and "2 1 2+9", where 2+9 is a word of two pieces.
    found = count(tokens_of([([1], [1, 2, 1, 2]), ([], [2, 1, 2, 9])]), window=3)
    assert found.segments.tolist() == [0, 1, 5, 5, 8]
    assert found.counts.tolist() == [
        [4, 4, 3, 4, 3, 3, 4, 1],
        [0, 2, 2, 2, 0, 2, 1, 0],
        [0, 1, 1, 0, 0, 1, 0, 0],
    ]
    assert found.totals.tolist() == [8, 5, 3]


@pytest.mark.parametrize("unit", ["word", "wordpiece"])
@pytest.mark.parametrize("passages", [60, 2, 0])
def test_counts_are_those_of_the_slow_counter(unit, passages):
    tokens = random_tokens(5, passages)
    found = count(tokens, unit=unit, window=6)
    counts, totals = naive(tokens, unit, 6)
    assert np.array_equal(found.counts, counts.reshape(6, -1))
    assert found.totals.tolist() == totals


def peak_of(folder, tokens, memory=ngrams.MEMORY):
    """Count n-grams; return the most bytes that arrays took."""
    tracemalloc.start()
    ngrams.count_to(folder, tokens, memory=memory)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_blocks_and_less_memory_change_no_bit(tmp_path, monkeypatch):
    """Words of many pieces; ranges of about 300 hashes, read from blocks of 700 words."""
    draw = np.random.default_rng(3)
    passages = [([], draw.integers(0, 50, 100).tolist()) for _ in range(200)]
    tokens = tokens_of(passages, np.arange(50) < 40)
    whole = peak_of(tmp_path / "whole", tokens)
    monkeypatch.setattr(words_module, "BLOCK", 900)
    monkeypatch.setattr(ngrams, "BLOCK", 700)
    assert peak_of(tmp_path / "spilt", tokens, memory=2 * 300 * ngrams.KEY) < whole / 2
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "spilt" / path.name).read_bytes() == path.read_bytes()
    assert np.array_equal(read_counts(tmp_path / "spilt").counts, naive(tokens, "word", 4)[0])
