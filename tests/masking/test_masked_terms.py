"""What the masks fall on: importance must not select stop-words of real English."""

import importlib
import re
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest

from cdmae.collections.store import Collection, write_collection
from cdmae.files import read_json
from cdmae.importance import ami, ngrams
from cdmae.masking import terms
from cdmae.tokens import tokenise, vocabulary
from cdmae.tokens.corpus import read_tokens, write_tokens

SETTINGS = {"strategy": "importance", "ratio": 0.5, "sigma": 1.0, "max_length": 60}
FORMULA = {"pmi": "min", "normaliser": "order", "edges": "literal"}


def english():
    """Passages of English that every Python brings along: the documentation strings of its library."""
    found = set()
    strings = re.compile(r'^ *"""(.+?)"""', re.DOTALL | re.MULTILINE)
    for path in sorted(Path(textwrap.__file__).parent.glob("[c-s]*.py"))[:70]:
        for text in strings.findall(path.read_text(encoding="utf-8")):
            if len(text) > 150 and ">>>" not in text:
                found.add(text)
    return sorted(found)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A tokenizer, tokens, counts and importance, by the library."""
    folder = tmp_path_factory.mktemp("made")
    texts = english()
    assert len(texts) > 400
    tokenise.train_tokenizer(texts, 3000).save_pretrained(folder / "tokenizer")
    names = [str(row) for row in range(len(texts))]
    passages = pa.table({"passage_id": names, "title": [""] * len(texts), "text": texts})
    write_collection(folder / "collection", Collection(passages, {}, {}, {}))
    write_tokens(folder / "tokens", tokenise.tokenise(passages, folder / "tokenizer", 1))
    read = read_tokens(folder / "tokens")
    ngrams.count_to(folder / "ngrams", read, unit="word", window=4)
    ami.estimate(folder / "importance", folder / "ngrams", read, FORMULA)
    return folder


@pytest.fixture(scope="module")
def found(made):
    where = read_tokens(made / "tokens"), made / "tokenizer", made / "importance"
    terms.describe(made / "terms.json", *where, settings=SETTINGS, seed=42)
    return read_json(made / "terms.json")


def test_masking_by_importance_spares_stop_words_and_the_commonest_words(found):
    uniform, aware = (found[name]["stop_word_share"] for name in ("uniform", "importance"))
    assert 0.35 < uniform < 0.6  # 40 % in the paper, section 3.2
    assert aware < 0.7 * uniform
    terms_, shares = zip(*found["uniform"]["top"], strict=True)
    assert {"the", "."} <= set(terms_)
    assert list(shares) == sorted(shares, reverse=True)
    assert found["importance"]["top"][0][1] < shares[0]


def test_a_tokenizer_is_trained_or_copied(made, tmp_path):
    make = importlib.import_module("workflow.scripts.tokenizer").main
    passages = made / "collection/passages.parquet"
    start = {"collection": "docs", "vocabulary": 3000, "strip_accents": True}
    make(settings=start, passages=passages, output=tmp_path / "tokenizer")
    copied = {"checkpoint": str(made / "tokenizer")}
    make(settings=copied, passages=None, output=tmp_path / "copy")
    pieces = vocabulary.read_pieces(made / "tokenizer")
    for name in ("tokenizer", "copy"):
        assert vocabulary.read_pieces(tmp_path / name) == pieces
