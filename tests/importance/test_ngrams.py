"""Counting n-grams: equal to a slow obvious counter, whatever the blocks and the memory."""

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from ngram_counts import count, read_counts

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
@pytest.mark.parametrize("window", [2, 4, 6])
def test_counts_are_those_of_the_slow_counter(unit, window):
    tokens = random_tokens(window)
    found = count(tokens, unit=unit, window=window)
    counts, totals = naive(tokens, unit, window)
    assert np.array_equal(found.counts, counts)
    assert found.totals.tolist() == totals


@pytest.mark.parametrize("passages", [[], [([], [])], [([1], [])], [([], [9])]])
def test_collections_of_next_to_nothing(passages):
    tokens = tokens_of(passages)
    found = count(tokens)
    counts, totals = naive(tokens, "word", 4)
    assert np.array_equal(found.counts, counts.reshape(4, -1))
    assert found.totals.tolist() == totals


def test_blocks_and_memory_change_no_bit(tmp_path, monkeypatch):
    """Words of many pieces; ranges of about 30 hashes, read from blocks of 700 words."""
    draw = np.random.default_rng(3)
    passages = [([], draw.integers(0, 50, 100).tolist()) for _ in range(200)]
    tokens = tokens_of(passages, np.arange(50) < 40)
    ngrams.count_to(tmp_path / "whole", tokens)
    monkeypatch.setattr(words_module, "BLOCK", 900)
    monkeypatch.setattr(ngrams, "BLOCK", 700)
    ngrams.count_to(tmp_path / "spilt", tokens, memory=2 * 30 * ngrams.KEY)
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "spilt" / path.name).read_bytes() == path.read_bytes()
    assert np.array_equal(read_counts(tmp_path / "spilt").counts, naive(tokens, "word", 4)[0])


LIMITED = """
import resource, sys
import numpy as np
from cdmae.importance import ngrams
from cdmae.tokens.corpus import Tokens

draw = np.random.default_rng(0)
words = np.minimum(draw.zipf(1.3, 3_000_000), 60_000).astype(np.uint16)
tokens = Tokens.of(words, np.full(60_000, 50), np.ones(60_001, bool))
kilobytes = int(open("/proc/self/status").read().split("VmData:")[1].split()[0])
limit = kilobytes * 1024 + 160_000_000
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    ngrams.count_to(sys.argv[1], tokens, memory=int(sys.argv[2]))
except MemoryError:
    print("too much")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_count_in_limited_memory_spills(tmp_path):
    """160 MB beside the mapped files: sorting all hashes at once takes more."""
    said = {}
    for name, memory in (("spilt", 8 * 10**7), ("at-once", 2 * 10**9)):
        command = [sys.executable, "-c", LIMITED, tmp_path / name, str(memory)]
        said[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said == {"spilt": "", "at-once": "too much\n"}
