"""Masking by frequency, in spans and in collocations: what each strategy knows of the words, and
what it chooses.
"""

import itertools
import math

import numpy as np
import pytest
from ngram_counts import count
from test_masking import KEY, NAMES, batch_of, random_batch, select

from cdmae import masking
from cdmae.errors import InputError
from cdmae.importance import ami, ngrams
from cdmae.importance import table as ngram_table
from cdmae.masking import Side
from cdmae.masking.strategies.pmi_span import collocations, pmi
from cdmae.masking.strategies.span import length
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

TEXTS = ["aa bb cc", "aa cc ccd", "aa ccd aa", "bb"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "aa", "bb", "cc", "##d"]


def collection(texts=TEXTS, pieces=PIECES):
    """Tokens of texts whose words are word-pieces; `ccd` is two of them."""
    ids = [
        [
            pieces.index(piece)
            for word in text.split()
            for piece in (["cc", "##d"] if word == "ccd" else [word])
        ]
        for text in texts
    ]
    starts = np.cumsum([0, *map(len, ids)])
    begins = np.array([not piece.startswith("##") for piece in pieces])
    return Tokens(np.array([*itertools.chain(*ids)], np.uint16), starts, starts[:-1], begins)


# --- 1 / frequency, and inverse document frequency ------------------------------------------------


def test_inverse_frequency_counts_words_and_idf_passages():
    """MASTER: 1 / the occurrences of the word, the same for all its word-pieces."""
    values = masking.values(["inverse_frequency"], collection(), None)["inverse_frequency"]
    words = {"aa": 4, "bb": 2, "cc": 2, "ccd": 2}
    expected = [
        -math.log(words[word])
        for text in TEXTS
        for word in text.split()
        for _ in range(1 + (word == "ccd"))
    ]
    assert values.dtype == np.float16
    assert values.tolist() == pytest.approx(expected, abs=1e-3)
    # log(1 + (P - d + .5) / (d + .5)), of which the strategy reads the logarithm
    values = masking.values(["idf"], collection(), None)["idf"]
    passages = {"aa": 3, "bb": 2, "cc": 2, "ccd": 2}
    weights = {
        word: math.log(1 + (4 - having + 0.5) / (having + 0.5)) for word, having in passages.items()
    }
    expected = [
        weights[word] for text in TEXTS for word in text.split() for _ in range(1 + (word == "ccd"))
    ]
    assert np.exp(values.astype(float)).tolist() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["idf", "inverse_frequency"])
def test_words_are_drawn_in_proportion_to_their_weights(name):
    """The first of a sample is w / sum w; the second follows without replacement."""
    number, weights = 40_000, np.array([0.5, 0.3, 0.15, 0.05])
    batch = batch_of([[11, 12, 13, 14]] * number, [np.log(weights).tolist()] * number)
    first = select(batch, Side(name, 0.25)).mean(axis=0)
    assert np.abs(first - weights).max() < 4 * math.sqrt(0.25 / number)
    both = select(batch, Side(name, 0.5)).mean(axis=0)
    odds = weights / (1 - weights)  # of another after it, if drawn first
    second = weights + weights * (odds.sum() - odds)
    assert np.abs(both - second).max() < 4 * math.sqrt(0.25 / number)


# --- spans ----------------------------------------------------------------------------------------


def test_span_lengths_are_geometric():
    """SpanBERT: P(l) in proportion to 0.2 x 0.8^(l - 1) up to 10, 3.8 on average."""
    draws = np.random.default_rng(0).integers(0, 2**64, 100_000, dtype=np.uint64)
    found = np.bincount([length(draw) for draw in draws], minlength=12) / len(draws)
    expected = np.array([0.0, *(0.2 * 0.8**each for each in range(10)), 0.0])
    expected /= expected.sum()
    assert np.abs(found - expected).max() < 4 * math.sqrt(0.25 / len(draws))
    assert (found * np.arange(12)).sum() == pytest.approx(3.8, abs=0.03)


def test_spans_are_contiguous_words():
    """Far fewer runs than masked words."""
    batch = random_batch(passages=200)

    def runs(mask):
        padded = np.pad(mask, ((0, 0), (1, 0)))
        return (padded[:, 1:] & ~padded[:, :-1]).sum()

    assert runs(select(batch, Side("span", 0.3))) < 0.5 * runs(
        select(batch, Side("whole_word", 0.3))
    )


def test_a_span_ends_at_a_special_token():
    """Of a passage in two halves by [MASK], it masks on one side what a long span would have taken
    on the other.
    """
    batch = batch_of([[11, 4, 12, 13, 14, 15]] * 500)
    found = select(batch, Side("span", 0.2))
    assert (found.sum(axis=1) == 1).all()
    assert not found[:, 1].any()


# --- collocations ---------------------------------------------------------------------------------


def counted(texts, window=4):
    """A collection of texts of invented words, its vocabulary, and the n-gram table."""
    words = sorted({word for text in texts for word in text.split()})
    pieces = [*PIECES[:5], *words]
    read = collection(texts, pieces)
    return read, pieces, count(read, window=window).table


def naive_pmi(table_words, texts):
    """Equation 3 of PMI-Masking over all ways of cutting, from counts by Counter."""
    from collections import Counter

    counts = [Counter() for _ in range(5)]
    for text in texts:
        parts = text.split()
        for order in range(1, 5):
            for at in range(len(parts) - order + 1):
                counts[order][tuple(parts[at : at + order])] += 1
    totals = [sum(each.values()) for each in counts]

    def log_p(gram):
        return math.log(counts[len(gram)][gram] / totals[len(gram)])

    def cuts(gram):
        yield (gram,)
        for at in range(1, len(gram)):
            yield from ((gram[:at], *rest) for rest in cuts(gram[at:]))

    return log_p(table_words) - max(
        sum(map(log_p, cut)) for cut in cuts(table_words) if len(cut) > 1
    )


def nonsense(seed=0, passages=300):
    """Texts in which some words go together."""
    draw = np.random.default_rng(seed)
    units = [f"w{n}" for n in range(30)] + [
        "new york city",
        "machine learning",
        "as well as possible",
    ]
    return [" ".join(draw.choice(units, 12)) for _ in range(passages)]


def spell(table, pieces):
    """The n-grams of a table as words, per order from 2."""
    size, grams = len(table.occurrences), [[(piece,) for piece in range(len(table.occurrences))]]
    for keys in table.keys:
        grams.append([(*grams[-1][int(key) // size], int(key) % size) for key in keys])
    return [[tuple(pieces[word] for word in gram) for gram in each] for each in grams[1:]]


def test_pmi_of_ngrams_is_the_least_over_all_ways_of_cutting():
    texts = nonsense(passages=60)
    _, pieces, table = counted(texts)
    grams, found = spell(table, pieces), pmi(table)
    for order in range(3):
        assert len(grams[order]) > 5
        for gram, value in zip(grams[order][:40], found[order][:40], strict=True):
            assert value == pytest.approx(naive_pmi(gram, texts), abs=1e-9)


def test_collocations_are_the_best_of_the_frequent():
    """By PMI within their length, half of them pairs, covering at most half of the text."""
    texts = nonsense()
    _, pieces, table = counted(texts)
    chosen = [
        {gram for gram, each in zip(grams, flags, strict=True) if each}
        for grams, flags in zip(spell(table, pieces), collocations(table), strict=True)
    ]
    assert ("machine", "learning") in chosen[0]
    assert ("new", "york", "city") in chosen[1]
    assert ("as", "well", "as", "possible") in chosen[2]
    covered = 0
    for order, (flags, values, counts) in enumerate(
        zip(collocations(table), pmi(table), table.counts, strict=True), 2
    ):
        assert (counts[flags] >= 10).all()
        rest = values[~flags & (counts >= 10)]
        assert not len(rest) or not flags.any() or values[flags].min() >= rest.max()
        covered += order * counts[flags].sum()
    assert covered <= 0.5 * table.totals[0]


def test_pmi_span_masks_collocations_as_units(tmp_path):
    texts = nonsense()
    read, pieces, table = counted(texts)
    folder = write(tmp_path / "importance", read)
    values = masking.values(["pmi_span"], read, folder)["pmi_span"]
    assert len(values) == len(read.ids)
    assert set(values.tolist()) == {0.0, 1.0}
    units = [[]]
    for id_, begins in zip(read.ids.tolist(), values.tolist(), strict=True):
        units += [[]] if begins else []
        units[-1].append(pieces[id_])
    assert {"machine learning", "new york city", "as well as possible"} <= {
        " ".join(unit) for unit in units[1:]
    }
    batch = masking.read(read, np.arange(200), 30, vocabulary_of(pieces, read), values)
    found = select(batch, Side("pmi_span", 0.3))
    parted, whole = 0, 0
    for row in range(200):
        edges = np.flatnonzero(batch.importance[row] > 0).tolist() + [int(batch.lengths[row])]
        shares = [found[row, a:b].mean() for a, b in itertools.pairwise(edges) if b - a > 1]
        parted += sum(0 < share < 1 for share in shares)
        whole += sum(share == 1 for share in shares)
    assert whole > 5 * parted


def test_pmi_span_reads_the_counts_as_it_reads_an_importance_of_them(tmp_path):
    """The same units, of which neither `pmi` nor `edges` of the importance decides anything; and
    the unit is known.
    """
    read, _, _ = counted(nonsense())
    ngrams.count_to(tmp_path / "ngrams", read, unit="word", window=4)
    folders = tmp_path / "ngrams", write(tmp_path / "importance", read)
    counts, estimated = (
        masking.values(["pmi_span"], read, folder)["pmi_span"] for folder in folders
    )
    assert np.array_equal(counts, estimated) and not counts.all()
    assert ngram_table.read(folders[0]).unit == ngram_table.read(folders[1]).unit == "word"


def vocabulary_of(pieces, read):
    special = np.arange(len(pieces)) < 5
    ordinary = np.flatnonzero(~special).astype(np.int32)
    return Vocabulary(len(pieces), 0, 2, 3, 4, special, ordinary, read.word_starts)


def write(folder, read, unit="word"):
    """An importance of the collection, as its rule writes it."""
    counted_in = folder.parent / f"{folder.name}-ngrams"
    ngrams.count_to(counted_in, read, unit=unit, window=4)
    ami.estimate(
        folder, counted_in, read, {"pmi": "min", "normaliser": "order", "edges": "literal"}
    )
    return folder


def test_words_of_several_pieces_belong_to_collocations(tmp_path):
    """The segmentation finds them by all their pieces; `cc` alone is another word than `ccd`."""
    draw = np.random.default_rng(0)
    texts = [
        " ".join(draw.choice(["aa", "bb", "cc", "bb ccd"], 9, p=[0.4, 0.2, 0.3, 0.1]))
        for _ in range(300)
    ]
    read = collection(texts)
    folder = write(tmp_path / "importance", read)
    values = masking.values(["pmi_span"], read, folder)["pmi_span"]
    second = np.flatnonzero(read.ids == PIECES.index("##d"))
    assert not values[second].any()
    assert not values[second - 1].any()
    assert values[second - 2].all()


def test_what_the_strategies_need_is_asked_for(tmp_path):
    read, _, _ = counted(nonsense())
    assert masking.values(["uniform", "whole_word", "span"], read, None) == {}
    with pytest.raises(
        InputError, match=r"few has counts of 100 words, but the tokens have [\d,]+"
    ):
        masking.values(["pmi_span"], read, write(tmp_path / "few", collection(TEXTS * 10)))
    for name, sentence in (
        ("importance", "needs values of importance"),
        ("pmi_span", "needs n-grams and their counts"),
    ):
        with pytest.raises(InputError, match=sentence):
            masking.values([name], read, None)
    folder = write(tmp_path / "pieces", read, unit="wordpiece")
    with pytest.raises(InputError, match="counts word-pieces"):
        masking.values(["pmi_span"], read, folder)
    folder = write(tmp_path / "few", collection())
    with pytest.raises(InputError, match="no n-gram of the collection occurs 10 times"):
        masking.values(["pmi_span"], collection(), folder)
    with pytest.raises(InputError, match=r"has 12 values for [\d,]+ word-pieces"):
        masking.values(["importance"], read, folder)


# --- masks of single positions --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_position_hides_itself_and_a_mask_of_its_own(name, monkeypatch):
    batch = random_batch(passages=12, longest=20)
    side = Side(name, 0.5)
    hidden = masking.hide(batch, side, KEY)
    size = batch.ids.shape[1]
    own = np.eye(size, dtype=bool)
    expected = np.floor(batch.candidates.sum(axis=1) * 0.5 + 1e-9)[:, None]
    assert hidden[:, own].all()
    drawn = (hidden & ~own).sum(axis=2)
    assert ((drawn == expected) | (drawn == expected - 1)).all()
    assert not (hidden & ~own & ~batch.candidates[:, None]).any()
    assert len({row.tobytes() for row in hidden[0]}) > 0.5 * batch.lengths[0]
    monkeypatch.setattr(masking, "CELLS_AT_ONCE", 1)
    assert np.array_equal(masking.hide(batch, side, KEY), hidden)
