"""Tokenisation: the ids of Hugging Face, repeatable training, unusual text."""

import itertools
import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers import BertTokenizer

from cdmae.errors import InputError
from cdmae.tokens import tokenise, vocabulary
from cdmae.tokens.corpus import TOKENS, read_tokens

ENGLISH = [
    "The decoder's task is to recover masked tokens, aggressively masked (50 %), from one vector.",
    "A naïve café in São Paulo: Ångström, fiancée, Übermut!",
    "It's the encoder that must compress; the decoder attends to the bottleneck.",
] * 3
ODD = [
    "", " ", "\n\t\r", "\x00",
    "a\x00b \x0b\x0cc\x85d\x1c\x1fe\x7f",
    "zero\u200bwidth\u200djoiner\ufeff \ufffd",
    "no\xa0break\u2003space\u3000ideographic\u2028line",
    "中文字符 mixed中文with latin", "한글 and 日本語のテキスト",
    "😀 👨‍👩‍👧🏽 🇩🇪 ok",
    "e\u0301 \u0301 =\u0338 \u0301\u0301x",
    "İstanbul ΣΑΣ ß ﬁ Ǆ ½ ² ™ Ⅷ",
    "x" * 99 + " " + "x" * 100 + " " + "x" * 101 + " é" * 3 + "é" * 200,
    "[MASK] [mask] a[MASK]b [CLS][SEP] [UNK]. [PAD",
    "##ing ## #ing the##",
    'don\'t stop-words... "quoted" (a|b|c) ;`=<>~^',
    "«»„“…—–·٪ العربية עברית हिन्दी ไทย",
    "\u037e\u1fef\u2260\u226e",
    "\U0010ffff \ue000 \ud7ff",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenise.train_tokenizer(ENGLISH + ODD, 700).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def hugging_face(tokenizer):
    found = tokenise.load_tokenizer(tokenizer)
    return lambda texts: found(texts, add_special_tokens=False)["input_ids"]


def table(titles, texts):
    return pa.table({"title": pa.array(titles, pa.string()), "text": pa.array(texts, pa.string())})


def passages_of(found):
    return [
        (found.ids[a:b].tolist(), found.ids[b:c].tolist())
        for a, b, c in zip(found.starts[:-1], found.text_starts, found.starts[1:], strict=True)
    ]


def test_ids_equal_the_hugging_face_tokenizers(tokenizer, hugging_face, tmp_path):
    """On unusual and random text, in one batch and in many."""
    draw = random.Random(5)
    letters = [*"".join(ODD), *" .,-abcdefgABC\u0301", "[MASK]", "the", "masked", "x" * 60]
    lengths = [draw.randrange(25) for _ in range(3000)]
    texts = ODD + ENGLISH + ["".join(draw.choices(letters, k=length)) for length in lengths]
    titles = texts[::-1]
    expected = hugging_face(texts)
    tokens = tokenise.Tokeniser(tokenizer).tokens(table(titles, texts))
    assert passages_of(tokens) == list(zip(expected[::-1], expected, strict=True))
    assert tokens.ids.dtype == np.uint16
    passages = table(titles, texts)
    passages = passages.add_column(0, "passage_id", pa.array(map(str, range(len(texts)))))
    pq.write_table(passages, tmp_path / "passages.parquet", row_group_size=10)
    read = tmp_path / "passages.parquet"
    tokenise.tokenise_to(tmp_path / "streamed", read, tokenizer)
    streamed = read_tokens(tmp_path / "streamed")
    for name in TOKENS:
        assert np.array_equal(getattr(tokens, name), getattr(streamed, name))


def test_an_empty_collection_and_a_missing_title(tokenizer, hugging_face):
    found = tokenise.Tokeniser(tokenizer).tokens(table([], []))
    assert len(found) == 0
    assert found.ids.tolist() == []
    found = tokenise.Tokeniser(tokenizer).tokens(table([None], ["some text"]))
    assert passages_of(found) == [([], hugging_face(["some text"])[0])]


def test_the_same_text_trains_the_same_vocabulary_in_another_process():
    letters = itertools.product("abcdefgh", "ijklmnop", "qrstuvwx")
    text = [f"{a}{b}{c} {c}{b}{a}" for a, b, c in letters]  # ties wherever one looks
    script = "import sys, json; from cdmae.tokens.tokenise import train_pieces; "
    script += "print(list(train_pieces(json.load(sys.stdin), 120)))"
    how = {"input": json.dumps(text), "capture_output": True, "text": True, "check": True}
    found = subprocess.run([sys.executable, "-c", script], **how).stdout
    pieces = list(tokenise.train_pieces(text, 120))
    assert found == f"{pieces}\n" and len(pieces) == 120, "cut among the ties"


def test_special_tokens_come_first_and_punctuation_has_no_continuing_pieces():
    pieces = tokenise.train_pieces([*ENGLISH, "中文 a中b"], 300)
    assert list(pieces)[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert "##a" in pieces
    assert not {"##!", "##中"} & pieces.keys()
    with pytest.raises(InputError, match="vocabulary is 20, but the single characters"):
        tokenise.train_pieces(ENGLISH, 20)


def test_the_vocabulary_distinguishes_special_ordinary_and_unused_pieces(tmp_path):
    pieces = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "a", "##b"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    BertTokenizer(vocab=vocab).save_pretrained(tmp_path)
    found = vocabulary.Vocabulary.read(tmp_path)
    assert found.ordinary.tolist() == [7, 8]
    assert np.flatnonzero(found.special).tolist() == [0, 2, 3, 4, 5]


READERS = (vocabulary.Vocabulary.read, tokenise.load_tokenizer)


@pytest.mark.parametrize("read", READERS)
def test_a_folder_without_a_tokenizer_is_refused(tmp_path, read):
    with pytest.raises(InputError, match="(holds|contains) no tokenizer"):
        read(tmp_path)
    # transformers makes an empty tokenizer of it
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="(holds|contains) no tokenizer"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("read", "part", "named"),
    [
        (READERS[0], {"pre_tokenizer": None}, "does not divide texts into words"),
        *(
            (read, {"normalizer": {"type": "Nobody"}}, "as a tokenizer|can load")
            for read in READERS
        ),
    ],
)
def test_an_unfit_or_damaged_tokenizer_is_refused(tokenizer, tmp_path, read, part, named):
    """The libraries raise many kinds of errors."""
    shutil.copytree(tokenizer, tmp_path, dirs_exist_ok=True)
    known = json.loads((tokenizer / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(known | part))
    with pytest.raises(InputError, match=f"{tmp_path}.*({named})"):
        read(tmp_path)
