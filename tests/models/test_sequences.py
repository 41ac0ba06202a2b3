"""What the models read equals what transformers' tokenizer would give them."""

import numpy as np
import pyarrow as pa
import pytest

from cdmae.models import ragged, sequences
from cdmae.models.ragged import Ragged
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary

SENTENCE = "the quick brown fox jumps over a lazy dog while seventeen more of them sleep in an old barn near it"
WORDS = SENTENCE.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer")
    tokenise.train_tokenizer([" ".join(WORDS)] * 3, 90).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def texts():
    generator = np.random.default_rng(1)
    return [" ".join(generator.choice(WORDS, size)) for size in generator.integers(1, 25, 40)]


def test_a_passage_is_cls_title_text_sep_cut_to_length(folder, texts):
    hf = tokenise.load_tokenizer(folder)
    titles = [text if row % 3 else "" for row, text in enumerate(reversed(texts))]
    source = tokenise.tokenise(pa.table({"title": titles, "text": texts}), folder, 1)
    rows = np.array([3, 0, 39, 7, 7])
    found = sequences.frame(
        Ragged(source.ids, source.starts).take(rows, 28), Vocabulary.read(folder)
    )
    joined = [f"{titles[row]} {texts[row]}" for row in rows]
    expected = hf(joined, truncation=True, max_length=30)["input_ids"]
    assert np.split(found.values, found.starts[1:-1])[2].tolist() == expected[2]
    assert found.values.tolist() == sum(expected, [])
    assert found.lengths.tolist() == [len(each) for each in expected]


@pytest.mark.parametrize("length", [16, 17, 40, 192])
def test_a_pair_is_cut_like_transformers_cuts_it(folder, texts, length):
    hf = tokenise.load_tokenizer(folder)
    source = sequences.queries(texts, folder, 1)
    first, second = np.arange(40), np.arange(40)[::-1].copy()
    found = sequences.pairs(source, first, source, second, length, Vocabulary.read(folder))
    expected = hf(
        texts,
        texts[::-1],
        truncation="longest_first",
        max_length=length,
        return_token_type_ids=True,
    )
    assert found.values.tolist() == sum(expected["input_ids"], [])
    assert found.types.tolist() == sum(expected["token_type_ids"], [])


def test_ragged_by_hand():
    """Passages in the order asked for, cut, some values of each; framed, an empty one has [CLS] = 2
    and [SEP] = 3.
    """
    whole = Ragged.of([[11, 12, 13, 14], [21], [], [31, 32]])
    inner = whole.take(np.array([3, 0, 2, 1]), 3)
    assert inner.values.tolist() == [31, 32, 11, 12, 13, 21]
    kept = inner.keep(inner.values % 2 == 1)
    assert (kept.values.tolist(), kept.lengths.tolist()) == ([31, 11, 13, 21], [1, 2, 0, 1])
    special = np.arange(40) < 5
    framed = sequences.frame(
        inner, Vocabulary(40, 0, 2, 3, 4, special, np.flatnonzero(~special), ~special)
    )
    assert framed.values.tolist() == [2, 31, 32, 3, 2, 11, 12, 13, 3, 2, 3, 2, 21, 3]
    assert framed.starts.tolist() == [0, 4, 9, 11, 14]
    inside = ragged.content(framed.starts)
    assert framed.values[inside].tolist() == inner.values.tolist()
    cut = framed.cut(slice(1, 3))
    assert (cut.values.tolist(), cut.starts.tolist()) == ([2, 11, 12, 13, 3, 2, 3], [0, 5, 7])


def test_chunks_cover_every_row_once_sorted_and_within_the_budget():
    lengths = np.random.default_rng(3).integers(3, 60, 200)
    parts = sequences.chunks(lengths, 256)
    assert sorted(np.concatenate(parts).tolist()) == list(range(200))
    assert all(len(part) * lengths[part].max() <= 256 for part in parts)
    ordered = lengths[np.concatenate(parts)]
    assert (np.diff(ordered) >= 0).all()
    assert [part.tolist() for part in sequences.chunks(np.array([9, 2, 9]), 5)] == [[1], [0], [2]]
    assert sequences.chunks(np.array([], dtype=int), 5) == []
