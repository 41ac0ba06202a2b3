"""Tokenizers of every kind: ids, words and special tokens agree with Hugging Face."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from tiny_tokenizers import KINDS, TEXTS

from cdmae.errors import InputError
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary, read_pieces

TITLES = ["", "Masked mail", "e-mail", "<mask> of the [MASK]", "", "mail"]
PASSAGES = ["mail (mail) e-mail, unmasked don't", *TEXTS, "two  blanks\nthe\n\nend", "", ""]
JOINED = [" ".join(filter(None, pair)) for pair in zip(TITLES, PASSAGES, strict=True)]


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    KINDS[request.param]().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def hugging_face(folder):
    return tokenise.load_tokenizer(folder)


@pytest.fixture(scope="module")
def vocabulary(folder):
    return Vocabulary.read(folder)


@pytest.fixture(scope="module")
def tokens(folder):
    return tokenise.Tokeniser(folder).tokens(pa.table({"title": TITLES, "text": PASSAGES}))


def words_of(hugging_face, text):
    """Return the words of a text as lists of ids."""
    read = hugging_face(text, add_special_tokens=False)
    words = {}
    for word, piece in zip(read.word_ids(), read["input_ids"], strict=True):
        words.setdefault(word, []).append(piece)
    return list(words.values())


def test_ids_equal_the_ids_of_the_joined_text(tokens, vocabulary, hugging_face):
    """Users of the trained model pass title, space and text to the tokenizer."""
    ids = vocabulary.of_model(tokens.ids)
    expected = hugging_face(JOINED, add_special_tokens=False)["input_ids"]
    spans = itertools.pairwise(tokens.starts)
    assert [ids[begin:end].tolist() for begin, end in spans] == expected
    for row, title in enumerate(TITLES):
        alone = hugging_face(title, add_special_tokens=False)["input_ids"] if title else []
        assert ids[tokens.starts[row] : tokens.text_starts[row]].tolist() == alone


def test_words_follow_the_tokenizer_s_boundaries(tokens, vocabulary, hugging_face):
    assert np.array_equal(tokens.word_starts, vocabulary.word_starts)
    for row, text in enumerate(JOINED):
        if "中" in text:  # each of these word-pieces is a word
            continue
        ids = tokens.ids[tokens.starts[row] : tokens.starts[row + 1]]
        begins = np.flatnonzero(vocabulary.word_starts[ids])
        found = np.split(vocabulary.of_model(ids), begins[1:]) if len(ids) else []
        assert [part.tolist() for part in found] == words_of(hugging_face, text)


def test_word_pieces_of_scripts_without_spaces_are_words(folder):
    found = tokenise.Tokeniser(folder).tokens(pa.table({"title": [""], "text": ["中文字符"]}))
    pieces = read_pieces(folder)
    for number in found.ids.tolist():
        is_whole = pieces[number].strip("#") in "中文字符"
        assert found.word_starts[number] or not is_whole


def test_special_tokens_agree_and_pieces_are_spelt_as_text(vocabulary, hugging_face, folder):
    for name in ("pad", "cls", "sep", "mask"):
        assert getattr(vocabulary, f"{name}_id") == getattr(hugging_face, f"{name}_token_id")
    special = set(np.flatnonzero(vocabulary.special[: vocabulary.pieces]).tolist())
    assert set(hugging_face.all_special_ids) <= special
    assert not special & set(vocabulary.ordinary.tolist())
    assert vocabulary.pieces == len(hugging_face)
    pieces = read_pieces(folder)
    assert len(pieces) == vocabulary.size
    begins = dict(zip(pieces, vocabulary.word_starts, strict=True))
    assert begins.get("the") or begins.get("t")
    assert all(piece.startswith("##") for piece in pieces if not begins[piece])


def test_a_tokenizer_without_a_mask_is_refused(folder, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"pad_token": "nothing"}')
    message = r"names no pad_token in its tokenizer_config.json; expected the tokenizer of a"
    with pytest.raises(InputError, match=message):
        Vocabulary.read(tmp_path)
