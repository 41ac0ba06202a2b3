"""The words that masks cover in real English, by the jobs from a collection to its importance."""

import re
import textwrap
from pathlib import Path

import pytest
from small_collections import stored

from cdmae.config.objectives import Mae
from cdmae.files import read_json
from cdmae.importance import ami, ngrams
from cdmae.masking import terms
from cdmae.tokens import tokenise, vocabulary
from cdmae.tokens.corpus import read_tokens
from workflow.scripts.tokenizer import main as make_tokenizer

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
    """The outputs of the jobs."""
    folder = tmp_path_factory.mktemp("made")
    texts = english()
    assert len(texts) > 400
    stored(folder, texts)
    passages = folder / "passages.parquet"
    tokenizer = folder / "tokenizer"
    tokens = folder / "tokens"
    counted = folder / "ngrams"
    start = {"collection": "docs", "vocabulary": 3000, "strip_accents": True}
    make_tokenizer(settings=start, passages=passages, output=tokenizer)
    tokenise.tokenise_to(tokens, passages, tokenizer, threads=2)
    ngrams.count_to(counted, read_tokens(tokens), unit="word", window=4)
    importance = folder / "importance"
    ami.estimate(importance, counted, read_tokens(tokens), FORMULA)
    return {"tokens": tokens, "tokenizer": tokenizer, "importance": importance}


def test_masking_by_importance_spares_stop_words_and_the_commonest_words(made, tmp_path):
    assert Mae(start="s", collection="c").masking() == SETTINGS | {"max_length": 150}
    where = read_tokens(made["tokens"]), made["tokenizer"], made["importance"]
    terms.describe(tmp_path / "terms.json", *where, settings=SETTINGS, seed=42)
    found = read_json(tmp_path / "terms.json")
    uniform, aware = (found[name]["stop_word_share"] for name in ("uniform", "importance"))
    assert 0.35 < uniform < 0.6  # 40 % in the paper, section 3.2
    assert aware < 0.7 * uniform
    words, shares = zip(*found["uniform"]["top"], strict=True)
    assert {"the", "."} <= set(words)
    assert list(shares) == sorted(shares, reverse=True)
    assert found["importance"]["top"][0][1] < shares[0]


def test_the_tokenizer_of_a_checkpoint_is_copied(made, tmp_path):
    settings = {"checkpoint": str(made["tokenizer"])}
    make_tokenizer(settings=settings, passages=None, output=tmp_path / "copy")
    pieces = vocabulary.read_pieces(made["tokenizer"])
    assert vocabulary.read_pieces(tmp_path / "copy") == pieces
