"""Counting n-grams: equal to a slow obvious counter, whatever the threads."""

import itertools
from collections import Counter

import numpy as np
import pytest

from cdmae.errors import InputError
from cdmae.importance import ngrams
from cdmae.importance import table as ngram_table
from cdmae.tokens.corpus import Tokens

PIECES = 12  # word-pieces 9, 10 and 11 continue a word
WORD_STARTS = np.array([True] * 9 + [False] * 3)


def tokens_of(passages, word_starts=WORD_STARTS):
    """Tokens from (title ids, text ids) per passage."""
    segments = [segment for passage in passages for segment in passage]
    lengths = np.array([len(segment) for segment in segments], np.int64)
    return Tokens.of(np.array([*itertools.chain(*segments)], np.uint16), lengths, word_starts)


def random_tokens(seed, passages=60, length=25):
    draw = np.random.default_rng(seed)
    shares = 1 / np.arange(1, PIECES + 1)

    def text():
        return draw.choice(PIECES, draw.integers(0, length), p=shares / shares.sum()).tolist()

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


def test_counts_of_a_text_by_hand():
    # Titles: "1", none. Texts: "1 2 1 2" and "2 1 2+9", where 2+9 is a word of two pieces.
    found = ngrams.count(tokens_of([([1], [1, 2, 1, 2]), ([], [2, 1, 2, 9])]), window=3)
    assert found.segments.tolist() == [0, 1, 5, 5, 8]
    assert found.counts.tolist() == [
        [4, 4, 3, 4, 3, 3, 4, 1],
        [0, 2, 2, 2, 0, 2, 1, 0],
        [0, 1, 1, 0, 0, 1, 0, 0],
    ]
    assert found.totals.tolist() == [8, 5, 3]


@pytest.mark.parametrize("unit", ngrams.UNITS)
@pytest.mark.parametrize("window", [1, 2, 4, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_counts_are_those_of_the_slow_counter(unit, window, seed):
    tokens = random_tokens(seed)
    found = ngrams.count(tokens, unit=unit, window=window)
    counts, totals = naive(tokens, unit, window)
    assert np.array_equal(found.counts, counts)
    assert found.totals.tolist() == totals


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_bit(threads, monkeypatch):
    monkeypatch.setattr(ngrams, "PARTITION", 16)  # many partitions
    monkeypatch.setattr(ngrams, "GROUP", 3)
    tokens = random_tokens(2, passages=200)
    expected = ngrams.count(tokens)
    found = ngrams.count(tokens, threads=threads)
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.counts, naive(tokens, "word", 4)[0])
    for name in ("word_keys", "word_numbers", "occurrences", "totals"):
        assert np.array_equal(getattr(found.table, name), getattr(expected.table, name))
    tables = (table.keys + table.counts for table in (found.table, expected.table))
    assert all(np.array_equal(one, other) for one, other in zip(*tables, strict=True))


def test_many_words_of_many_pieces():
    draw = np.random.default_rng(3)
    starts = np.arange(50) < 10
    tokens = tokens_of([([], draw.integers(0, 50, 30_000).tolist())], starts)
    found = ngrams.count(tokens, window=2, threads=2)
    assert np.array_equal(found.counts, naive(tokens, "word", 2)[0])
    assert len(found.table.word_keys) > 1 << 12  # the dictionary of words has grown


@pytest.mark.parametrize("unit", ngrams.UNITS)
def test_the_table_gives_the_text_of_its_collection_the_counts_of_counting(unit):
    tokens = random_tokens(4)
    found = ngrams.count(tokens, unit=unit)
    edges = tokens.edges
    for segment, (begin, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        words, starts = found.table.words(tokens.ids[begin:end], tokens.word_starts)
        cut = slice(found.segments[segment], found.segments[segment + 1])
        assert np.array_equal(found.table.look_up(words), found.counts[:, cut])
        assert len(starts) == cut.stop - cut.start


def test_the_table_counts_what_is_new_as_once():
    # 1 2 is repeated; 3, the word 1+9, and 2 1 are not.
    table = ngrams.count(tokens_of([([], [1, 2, 5]), ([], [1, 2]), ([], [3])]), window=3).table
    words, starts = table.words(np.array([1, 2, 1, 9, 1, 2, 4]), WORD_STARTS)
    assert words.tolist() == [1, 2, -1, 1, 2, 4]
    assert starts.tolist() == [0, 1, 2, 4, 5, 6]
    assert table.look_up(words).tolist() == [
        [2, 2, 1, 2, 2, 1],
        [2, 1, 1, 2, 1, 0],
        [1, 1, 1, 1, 0, 0],
    ]


def test_the_table_is_sorted_and_holds_what_is_repeated():
    tokens = random_tokens(5)
    table = ngrams.count(tokens).table
    for order, (keys, counts) in enumerate(zip(table.keys, table.counts, strict=True), 2):
        assert (np.diff(keys.astype(np.int64)) > 0).all()
        grams = Counter(
            tuple(words[at : at + order])
            for words in segments_of(tokens)
            for at in range(len(words) - order + 1)
        )
        assert sorted(counts) == sorted(count for count in grams.values() if count > 1)


def test_counts_are_read_as_written(tmp_path):
    tokens = random_tokens(6)
    expected = ngrams.count(tokens)
    for name, threads in (("one", 1), ("two", 2)):
        ngrams.count_to(tmp_path / name, tokens, unit="word", window=4, threads=threads)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    found = ngrams.Counts.read(tmp_path / "two")
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.segments, expected.segments)
    assert found.table.unit == "word"
    assert found.table.window == 4


@pytest.mark.parametrize("passages", [[], [([], [])], [([1], [])], [([], [9])]])
def test_collections_of_next_to_nothing(passages):
    tokens = tokens_of(passages)
    found = ngrams.count(tokens, threads=3)
    counts, totals = naive(tokens, "word", 4)
    assert np.array_equal(found.counts, counts.reshape(4, -1))
    assert found.totals.tolist() == totals
    assert found.table.look_up(np.empty(0, int)).shape == (4, 0)


@pytest.mark.parametrize(
    "damage", [lambda path: path.write_bytes(path.read_bytes()[:-9]), lambda path: path.unlink()]
)
@pytest.mark.parametrize("name", ["table.json", "keys_3.npy", "totals.npy"])
def test_a_damaged_table_is_refused(name, damage, tmp_path):
    ngrams.count_to(tmp_path / "ngrams", random_tokens(7), unit="word", window=4)
    damage(tmp_path / "ngrams" / name)
    with pytest.raises(InputError, match="delete it and run again"):
        ngram_table.read(tmp_path / "ngrams")


def test_an_unknown_unit_and_more_words_than_can_be_numbered_are_refused(monkeypatch):
    with pytest.raises(InputError, match="unit is 'letter'; allowed: word, wordpiece"):
        ngrams.count(tokens_of([]), unit="letter")
    tokens = tokens_of([([], [1, 2, 3, 4, 5, 6])])
    monkeypatch.setattr(ngrams, "MOST_WORDS", 5 + len(tokens.word_starts))
    for unit in ngrams.UNITS:
        with pytest.raises(
            InputError,
            match="has 6 words; at most 5 can be counted together: count it in shards",
        ):
            ngrams.count(tokens, unit=unit)
