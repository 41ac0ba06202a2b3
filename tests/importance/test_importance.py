"""Importance: equations 7 and 8 by hand and beside a slow form of them."""

import itertools
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from ngram_counts import count, read_counts
from test_ngrams import PIECES, WORD_STARTS, naive, random_tokens, tokens_of

from cdmae.errors import InputError
from cdmae.importance import ami, ngrams
from cdmae.importance import table as ngram_table
from cdmae.tokens import words
from cdmae.tokens.vocabulary import Vocabulary

VOCABULARY = Vocabulary(PIECES, 0, 0, 0, 0, np.zeros(PIECES, bool), np.arange(PIECES), WORD_STARTS)
LOG = math.log


def ami_of(passages, window, **settings):
    counts = count(tokens_of([([], text) for text in passages]), window=window)
    return ami.ami(counts.counts, counts.totals, **settings)


def test_eq7_pmi_of_two_words_by_order_and_pooled():
    # Words: 1 thrice, 2 twice, 3 once, of six; of three bigrams 1 2 is two, 1 3 one. With L = 2 the importance of a
    # word is the PMI with its only neighbour.
    #   PMI(1, 2) = log (2/3) / (3/6 x 2/6) = log 4        PMI(1, 3) = log (1/3) / (3/6 x 1/6) = log 4
    found = ami_of([[1, 2], [1, 2], [1, 3]], window=2)
    assert found == pytest.approx([LOG(4)] * 6)
    # 2 1 once beside 1 2 twice: PMI(2, 1) = log (1/3) / (3/6 x 3/6) = log 4/3, PMI(1, 2) = log
    # (2/3) / (1/4) = log 8/3
    found = ami_of([[1, 2], [1, 2], [2, 1]], window=2)
    assert found == pytest.approx([LOG(8 / 3)] * 4 + [LOG(4 / 3)] * 2)
    # Six words and three bigrams: PMI(1, 2) = log (2/9) / (3/9 x 2/9) = log 3, PMI(1, 3) = log
    # (1/9) / (3/9 x 1/9).
    found = ami_of([[1, 2], [1, 2], [1, 3]], window=2, normaliser="pooled")
    assert found == pytest.approx([LOG(3)] * 6)


def test_eq7_pmi_of_three_words_is_the_least_over_the_ways_of_cutting():
    # "1 2 3" twice, and 3 six times on its own: p(1) = p(2) = 2/12, p(3) = 8/12; p(1 2) = p(2 3) = 2/4; p(1 2 3) = 1.
    #   1|2|3: p = 2/12 x 2/12 x 8/12 = 1/54      1 2|3: 1/2 x 2/3 = 1/3      1|2 3: 1/6 x 1/2 = 1/12
    # The minimum is log 1 / (1/3); the product of single words gives log 54.
    # L = 3, and the sides of equation 8 are halved:
    #   word 1: (PMI(1 2) + PMI(1 2 3)) / 2,  PMI(1 2) = log (1/2) / (1/6 x 1/6) = log 18
    #   word 2: PMI(1 2) / 2 + PMI(2 3) / 2,  PMI(2 3) = log (1/2) / (1/6 x 2/3) = log 9/2
    #   word 3: (PMI(2 3) + PMI(1 2 3)) / 2
    text = [[1, 2, 3]] * 2 + [[3]] * 6
    expected = [LOG(18) + LOG(3), LOG(18) + LOG(4.5), LOG(4.5) + LOG(3)]
    assert ami_of(text, window=3) == pytest.approx([each / 2 for each in expected] * 2 + [0] * 6)
    expected = [LOG(18) + LOG(54), LOG(18) + LOG(4.5), LOG(4.5) + LOG(54)]
    assert ami_of(text, window=3, pmi="product") == pytest.approx(
        [each / 2 for each in expected] * 2 + [0] * 6
    )


def test_eq8_with_a_window_of_two_adds_the_neighbours_and_at_the_edges_what_there_is():
    # One passage 1 2 3: p(w) = 1/3, p(bigram) = 1/2, so that PMI = log (1/2) / (1/9) = log 9/2 for
    # both bigrams.
    assert ami_of([[1, 2, 3]], window=2) == pytest.approx([LOG(4.5), 2 * LOG(4.5), LOG(4.5)])
    # 1 2 3 with L = 4: bigrams log 9/2, the trigram (p = 1) at most log 1 / (1/2 x 1/3) = log 6; there is no 4-gram.
    #   literal, a third of each side:  word 1: (log 9/2 + log 6) / 3     word 2: 2 log 9/2 / 3     word 3: as word 1
    #   mean, twice the mean of two:    word 1:  log 9/2 + log 6          word 2: 2 log 9/2
    bigram, trigram = LOG(4.5), LOG(6)
    found = ami_of([[1, 2, 3]], window=4)
    assert found == pytest.approx([(bigram + trigram) / 3, 2 * bigram / 3, (bigram + trigram) / 3])
    found = ami_of([[1, 2, 3]], window=4, edges="mean")
    assert found == pytest.approx([bigram + trigram, 2 * bigram, bigram + trigram])


def slow(counts, segments, totals, pmi, normaliser, edges):
    """Equations 7 and 8, over all ways of cutting."""
    window = len(counts)
    norms = totals if normaliser == "order" else [sum(totals)] * window

    def log_p(begin, end):
        return LOG(counts[end - begin - 1][begin] / norms[end - begin - 1])

    def value(begin, end):
        ways = [
            sum(log_p(a, b) for a, b in itertools.pairwise([begin, *cuts, end]))
            for number in range(1, end - begin)
            for cuts in itertools.combinations(range(begin + 1, end), number)
        ]
        return log_p(begin, end) - (max(ways) if pmi == "min" else ways[-1])

    found = []
    for first, last in itertools.pairwise(segments):
        for word in range(first, last):
            sides = [value(word - j, word + 1) for j in range(1, window) if word - j >= first]
            sides += [value(word, word + j + 1) for j in range(1, window) if word + j < last]
            found.append(
                sum(sides) / (window - 1)
                if edges == "literal"
                else 2 * sum(sides) / max(1, len(sides))
            )
    return found


@pytest.mark.parametrize("pmi", ("min", "product"))
@pytest.mark.parametrize("normaliser", ("order", "pooled"))
@pytest.mark.parametrize("edges", ("literal", "mean"))
@pytest.mark.parametrize("window", [2, 4, 5])
def test_eq8_beside_the_slow_form(pmi, normaliser, edges, window):
    tokens = random_tokens(1, passages=25)
    counted = count(tokens, window=window)
    settings = {"pmi": pmi, "normaliser": normaliser, "edges": edges}
    counts, totals = naive(tokens, "word", window)
    found = ami.ami(counted.counts, counted.totals, **settings)
    assert found == pytest.approx(
        slow(counts.tolist(), counted.segments.tolist(), totals, **settings), abs=1e-5
    )


def test_a_stop_word_beside_a_collocation_is_less_important():
    # 1 is "the": everywhere. 2 3 is a collocation ("crossword puzzle"). Decision 1: the minimum
    # must not give "the" of "the crossword puzzle" the collocation's score; a product of single
    # words does.
    draw = np.random.default_rng(0)
    texts = []
    for _ in range(300):
        text = draw.integers(4, 9, 8).tolist()
        text[draw.integers(0, 8)] = 1
        texts.append([1, *text])
    for text in texts[:20]:
        text[3:6] = [1, 2, 3]
    shares = {}
    for pmi in ("min", "product"):
        the, crossword, _ = ami_of(texts, window=3, pmi=pmi)[3:6]
        shares[pmi] = the / crossword
    assert shares["min"] < 0.1
    assert shares["product"] > 0.3


def test_a_word_gives_its_importance_to_its_pieces_if_it_was_counted():
    tokens = tokens_of(
        [([1, 9], [2, 10, 11, 3]), ([9], [])]
    )  # a segment's first piece begins a word
    values = np.array([0.5, -1.25, 2, 1e6], np.float32)
    found = words.broadcast(values, tokens, "word")
    assert found.dtype == np.float16
    assert found.tolist() == [0.5, 0.5, -1.25, -1.25, -1.25, 2, words.LARGEST]
    assert words.broadcast(np.arange(7), tokens, "wordpiece").tolist() == list(range(7))
    tokens = tokens_of([([], [1, 2, 3])])
    with pytest.raises(InputError, match="2 words.* 3; delete both and run again"):
        words.broadcast(np.arange(2), tokens, "wordpiece")


@pytest.mark.parametrize("unit", words.UNITS)
def test_the_table_scores_the_text_of_its_collection_alike(unit, tmp_path):
    tokens = random_tokens(3)
    ngrams.count_to(tmp_path / "ngrams", tokens, unit=unit, window=4)
    counted = read_counts(tmp_path / "ngrams")
    settings = {"pmi": "product", "normaliser": "pooled", "edges": "mean"}
    ami.estimate(tmp_path / "importance", tmp_path / "ngrams", tokens, settings)
    table, values = (
        ami.Table.read(tmp_path / "importance"),
        ami.read_values(tmp_path / "importance"),
    )
    assert np.array_equal(
        values, words.broadcast(ami.ami(counted.counts, counted.totals, **settings), tokens, unit)
    )
    segments = [tokens.ids[begin:end] for begin, end in itertools.pairwise(tokens.edges.tolist())]
    found, _ = table.score(segments, VOCABULARY)
    assert [len(each) for each in found] == [len(ids) for ids in segments]
    assert np.array_equal(np.concatenate(found).astype(np.float16), values)


def test_importance_by_blocks_of_passages_has_the_same_bits(tmp_path, monkeypatch):
    tokens = random_tokens(4)
    settings = {"pmi": "min", "normaliser": "order", "edges": "literal"}
    ngrams.count_to(tmp_path / "ngrams", tokens, unit="word", window=4)
    ami.estimate(tmp_path / "whole", tmp_path / "ngrams", tokens, settings)
    monkeypatch.setattr(words, "BLOCK", 50)
    ami.estimate(tmp_path / "blocks", tmp_path / "ngrams", tokens, settings)
    whole = (tmp_path / "whole/values.npy").read_bytes()
    assert (tmp_path / "blocks/values.npy").read_bytes() == whole
    with pytest.raises(InputError, match="60 passages.* 59;"):
        ami.estimate(tmp_path / "other", tmp_path / "ngrams", tokens.part(0, 59), settings)


def test_an_importance_refers_to_its_ngrams_wherever_both_are_moved(tmp_path):
    """Every entry would copy the table otherwise, about a gigabyte for MS MARCO."""
    tokens, settings = random_tokens(3), {"pmi": "min", "normaliser": "order", "edges": "mean"}
    counted, folder = (
        tmp_path / "one" / part / "ami/tiny/docs" for part in ("ngrams", "importance")
    )
    ngrams.count_to(counted, tokens, unit="wordpiece", window=3)
    ami.estimate(folder, counted, tokens, settings)
    assert sorted(path.name for path in folder.iterdir()) == [
        "ngrams.json",
        "settings.json",
        "values.npy",
    ]
    (tmp_path / "one").rename(tmp_path / "two")
    moved = tmp_path / "two/importance/ami/tiny/docs"
    assert ami.Table.read(moved).settings == settings
    assert (
        ami.Table.read(moved).ngrams.totals.tolist()
        == read_counts(counted_in(moved)).totals.tolist()
    )
    assert ngram_table.unit_of(moved) == ngram_table.unit_of(counted_in(moved)) == "wordpiece"
    shutil.rmtree(counted_in(moved))
    with pytest.raises(
        InputError,
        match=f"^{moved} needs the n-grams in {counted_in(moved)}, which do not exist; .*./run",
    ):
        ami.Table.read(moved)


def counted_in(importance):
    return Path(str(importance).replace("/importance/", "/ngrams/"))


def test_new_words_count_as_seen_once_and_shares_tell_how_much_is_guessed():
    counted = count(tokens_of([([], [1, 2, 5]), ([], [1, 2]), ([], [3])]), window=2)
    (found,), _ = ami.Table(counted.table, {}).score([np.array([1, 7, 9])], VOCABULARY)
    # Six words and three bigrams: PMI(1, new) = log (1/3) / (2/6 x 1/6); the new word has two
    # pieces.
    assert found == pytest.approx([LOG(6)] * 3)
    # Words 1, 2, 1+9, 1, 2, 4; of their bigrams 1 2 alone is repeated, of their trigrams none.
    counted = count(tokens_of([([], [1, 2, 5]), ([], [1, 2]), ([], [3])]), window=3)
    table = ami.Table(counted.table, {})
    shares = [1 / 2, 1 / 3, 0, 0, 1 / 4, 1 / 3, 0]  # word 1+9 has two pieces
    texts = [np.array([1, 2, 1, 9, 1, 2, 4]), np.array([3]), np.empty(0, int)]
    _, seen = table.score(texts, VOCABULARY)
    assert seen[0] == pytest.approx(shares)
    assert seen[1].tolist() == [1.0], "it has no neighbours"
    assert seen[2].tolist() == []
