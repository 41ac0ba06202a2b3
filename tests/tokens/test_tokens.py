"""Vocabularies: repeatable training, special and unused word-pieces; folders without a tokenizer."""

import itertools
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from transformers import BertTokenizer

from cdmae.errors import InputError
from cdmae.tokens import tokenise, vocabulary

ENGLISH = [
    "The decoder's task is to recover masked tokens, aggressively masked (50 %), from one vector.",
    "A naïve café in São Paulo: Ångström, fiancée, Übermut!",
    "It's the encoder that must compress; the decoder attends to the bottleneck.",
] * 3


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenise.train_tokenizer(ENGLISH, 200).save_pretrained(folder)
    return folder


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


@pytest.mark.parametrize("read", [vocabulary.Vocabulary.read, tokenise.load_tokenizer])
def test_a_folder_without_a_tokenizer_or_with_a_damaged_one_is_refused(tokenizer, tmp_path, read):
    # transformers makes an empty tokenizer of it
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="(holds|contains) no tokenizer"):
        read(tmp_path)
    shutil.copytree(tokenizer, tmp_path, dirs_exist_ok=True)
    known = json.loads((tokenizer / "tokenizer.json").read_text())
    damaged = known | {"normalizer": {"type": "Nobody"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(damaged))
    with pytest.raises(InputError, match=f"{tmp_path}.*(as a tokenizer|can load)"):
        read(tmp_path)
