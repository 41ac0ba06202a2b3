"""What the models read equals what transformers' tokenizer would give them."""

import numpy as np
import pyarrow as pa
import pytest

from cdmae.models import sequences
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


def test_chunks_cover_every_row_once_sorted_and_within_the_budget():
    lengths = np.random.default_rng(3).integers(3, 60, 200)
    parts = sequences.chunks(lengths, 256)
    assert sorted(np.concatenate(parts).tolist()) == list(range(200))
    assert all(len(part) * lengths[part].max() <= 256 for part in parts)
    ordered = lengths[np.concatenate(parts)]
    assert (np.diff(ordered) >= 0).all()
    assert [part.tolist() for part in sequences.chunks(np.array([9, 2, 9]), 5)] == [[1], [0], [2]]
    assert sequences.chunks(np.array([], dtype=int), 5) == []
