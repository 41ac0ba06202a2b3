"""Tokenizers of every kind: ids, words and special tokens agree with Hugging Face."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny_tokenizers import KINDS, TEXTS

from cdmae.tokens import tokenise
from cdmae.tokens.corpus import TOKENS, read_tokens
from cdmae.tokens.vocabulary import Vocabulary, read_pieces

TITLES = [None, "Masked mail", "e-mail", "<mask> of the [MASK]", "", "mail"]
PASSAGES = ["mail (mail) e-mail, unmasked don't", *TEXTS, "two  blanks\nthe\n\nend", "", ""]
JOINED = [" ".join(filter(None, pair)) for pair in zip(TITLES, PASSAGES, strict=True)]


ODD = [
    "a\x00b \x0b\x0cc\x85d\x1c\x1fe\x7f",
    "zero\u200bwidth\u200djoiner\ufeff \ufffd",
    "中文字符 mixed中文with latin", "한글 and 日本語のテキスト",
    "😀 👨‍👩‍👧🏽 🇩🇪 ok",
    "e\u0301 \u0301 =\u0338 \u0301\u0301x",
    "İstanbul ΣΑΣ ß ﬁ Ǆ ½ ² ™ Ⅷ",
    "[MASK] [mask] a[MASK]b [CLS][SEP] [UNK]. [PAD",
    "«»„“…—–·٪ العربية עברית हिन्दी ไทย",
]  # fmt: skip


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


def test_ids_equal_the_ids_of_the_joined_text(folder, vocabulary, hugging_face, tmp_path):
    """Users of the trained model pass title, space and text to the tokenizer."""
    titles, texts = [*TITLES, *ODD, *ODD], [*PASSAGES, *reversed(ODD), *ODD]
    numbers = [str(row) for row in range(len(texts))]
    passages = pa.table({"passage_id": numbers, "title": titles, "text": texts})
    tokens = tokenise.Tokeniser(folder).tokens(passages)
    ids = vocabulary.of_model(tokens.ids)
    joined = [" ".join(filter(None, pair)) for pair in zip(titles, texts, strict=True)]
    expected = hugging_face(joined, add_special_tokens=False)["input_ids"]
    spans = itertools.pairwise(tokens.starts)
    assert [ids[begin:end].tolist() for begin, end in spans] == expected
    for row, title in enumerate(titles):
        alone = hugging_face(title, add_special_tokens=False)["input_ids"] if title else []
        assert ids[tokens.starts[row] : tokens.text_starts[row]].tolist() == alone
    pq.write_table(passages, tmp_path / "passages.parquet", row_group_size=5)
    tokenise.tokenise_to(tmp_path / "streamed", tmp_path / "passages.parquet", folder)
    streamed = read_tokens(tmp_path / "streamed")
    assert all(np.array_equal(getattr(tokens, name), getattr(streamed, name)) for name in TOKENS)
    assert len(tokenise.Tokeniser(folder).tokens(passages[:0])) == 0


def test_words_follow_the_tokenizer_s_boundaries(tokens, vocabulary, hugging_face):
    assert np.array_equal(tokens.word_starts, vocabulary.word_starts)
    for row, text in enumerate(JOINED):
        if "中" in text:  # each of these word-pieces is a word
            continue
        ids = tokens.ids[tokens.starts[row] : tokens.starts[row + 1]]
        begins = np.flatnonzero(vocabulary.word_starts[ids])
        found = np.split(vocabulary.of_model(ids), begins[1:]) if len(ids) else []
        assert [part.tolist() for part in found] == words_of(hugging_face, text)


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
