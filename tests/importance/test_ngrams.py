"""Counting n-grams: equal to a slow obvious counter, whatever the blocks and the memory."""

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from ngram_counts import count

from cdmae.errors import InputError
from cdmae.importance import ngrams
from cdmae.importance import table as ngram_table
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
    for begin, middle, end in zip(
        tokens.starts[:-1], tokens.text_starts, tokens.starts[1:], strict=True
    ):
        for ids in (tokens.ids[begin:middle].tolist(), tokens.ids[middle:end].tolist()):
            words = []
            for place, piece in enumerate(ids):
                if unit == "wordpiece" or place == 0 or tokens.word_starts[piece]:
                    words.append((piece,))
                else:
                    words[-1] += (piece,)
            found.append(words)
    return found


def naive(tokens, unit, window):
    """The counts [L, W] and the number of n-grams [L], with dictionaries of tuples."""
    segments = segments_of(tokens, unit)
    counts, totals = [], []
    for order in range(1, window + 1):
        grams = [
            [
                tuple(words[at : at + order]) if at + order <= len(words) else None
                for at in range(len(words))
            ]
            for words in segments
        ]
        occurrences = Counter(gram for row in grams for gram in row if gram is not None)
        counts.append(
            [occurrences[gram] if gram is not None else 0 for row in grams for gram in row]
        )
        totals.append(occurrences.total())
    return np.array(counts), totals


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


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


@pytest.mark.parametrize("unit", words_module.UNITS)
@pytest.mark.parametrize("window", [1, 2, 4, 6])
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
    assert found.table.look_up(np.empty(0, int)).shape == (4, 0)


def test_blocks_and_memory_change_no_bit(tmp_path, monkeypatch):
    """Words of many pieces; ranges of keys of about 30 positions, read from blocks of 700 words."""
    draw = np.random.default_rng(3)
    passages = [([], draw.integers(0, 50, 100).tolist()) for _ in range(200)]
    tokens = tokens_of(passages, np.arange(50) < 40)
    ngrams.count_to(tmp_path / "whole", tokens)
    monkeypatch.setattr(words_module, "BLOCK", 900)
    monkeypatch.setattr(ngrams, "BLOCK", 700)
    monkeypatch.setattr(ngrams, "SAMPLE", 10)
    ngrams.count_to(tmp_path / "spilt", tokens, memory=30 * ngrams.KEY)
    assert files(tmp_path / "spilt") == files(tmp_path / "whole")
    assert np.array_equal(np.load(tmp_path / "spilt/counts.npy"), naive(tokens, "word", 4)[0])


LIMITED = """
import resource, sys
import numpy as np
from cdmae.importance import ngrams
from cdmae.tokens.corpus import Tokens

draw = np.random.default_rng(0)
words = np.minimum(draw.zipf(1.3, 3_000_000), 60_000).astype(np.uint16)
tokens = Tokens.of(words, np.full(60_000, 50), np.ones(60_001, bool))
kilobytes = int(open("/proc/self/status").read().split("VmData:")[1].split()[0])
limit = kilobytes * 1024 + 140_000_000
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    ngrams.count_to(sys.argv[1], tokens, memory=int(sys.argv[2]))
except MemoryError:
    print("too much")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_count_in_limited_memory_spills_and_is_equal(tmp_path):
    """140 MB beside the mapped files: sorting all keys at once takes more."""
    said = {}
    for name, memory in (("spilt", 4 * 10**7), ("at-once", 10**9)):
        command = [sys.executable, "-c", LIMITED, tmp_path / name, str(memory)]
        said[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said == {"spilt": "", "at-once": "too much\n"}
    draw = np.random.default_rng(0)
    words = np.minimum(draw.zipf(1.3, 3_000_000), 60_000).reshape(60_000, 50)
    pairs = words[:, :-1] * 60_001 + words[:, 1:]
    _, which, times = np.unique(pairs, return_inverse=True, return_counts=True)
    counts = np.load(tmp_path / "spilt/counts.npy").reshape(4, 60_000, 50)
    assert np.array_equal(counts[1, :, :-1], times[which].reshape(pairs.shape))
    assert not counts[1, :, -1].any()


def test_counts_of_more_words_than_32_bits_number(monkeypatch):
    tokens = random_tokens(2)
    expected = count(tokens)
    monkeypatch.setattr(ngrams, "SMALL", 100)
    found = count(tokens)
    assert found.counts.dtype == found.table.counts[0].dtype == np.uint64
    assert np.array_equal(found.counts, expected.counts)
    assert all(map(np.array_equal, found.table.keys, expected.table.keys))


@pytest.mark.parametrize("unit", words_module.UNITS)
def test_the_table_gives_the_text_of_its_collection_the_counts_of_counting(unit):
    tokens = random_tokens(4)
    found = count(tokens, unit=unit)
    edges = tokens.edges
    for segment, (begin, end) in enumerate(itertools.pairwise(edges)):
        words, starts = found.table.words(tokens.ids[begin:end], tokens.word_starts)
        cut = slice(found.segments[segment], found.segments[segment + 1])
        assert np.array_equal(found.table.look_up(words), found.counts[:, cut])
        assert len(starts) == cut.stop - cut.start


def test_the_table_counts_what_is_new_as_once():
    # 1 2 is repeated; 3, the word 1+9, and 2 1 are not.
    table = count(tokens_of([([], [1, 2, 5]), ([], [1, 2]), ([], [3])]), window=3).table
    words, starts = table.words(np.array([1, 2, 1, 9, 1, 2, 4]), WORD_STARTS)
    assert words.tolist() == [1, 2, -1, 1, 2, 4]
    assert starts.tolist() == [0, 1, 2, 4, 5, 6]
    assert table.look_up(words).tolist() == [
        [2, 2, 1, 2, 2, 1],
        [2, 1, 1, 2, 1, 0],
        [1, 1, 1, 1, 0, 0],
    ]


@pytest.mark.parametrize("name", ["table.json", "keys_3.npy"])
def test_a_damaged_table_is_refused(name, tmp_path):
    ngrams.count_to(tmp_path / "ngrams", random_tokens(7))
    path = tmp_path / "ngrams" / name
    for content in (path.read_bytes()[:-9], None):
        path.unlink()
        if content:
            path.write_bytes(content)
        with pytest.raises(InputError, match="delete it and run again"):
            ngram_table.read(tmp_path / "ngrams")


def test_an_unknown_unit_and_keys_beyond_64_bits_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="unit is 'letter'; expected word, wordpiece"):
        ngrams.count_to(tmp_path / "ngrams", random_tokens(0), unit="letter")
    tokens = random_tokens(0)
    table = count(tokens).table
    words, pairs = len(table.occurrences), len(table.keys[0])
    assert pairs > words
    monkeypatch.setattr(ngrams, "MOST", words * words)
    with pytest.raises(
        InputError, match=f"of 3 words .* {pairs} .* lower window to 2, or count by"
    ):
        ngrams.count_to(tmp_path / "ngrams", tokens)
    assert not (tmp_path / "ngrams").exists()
