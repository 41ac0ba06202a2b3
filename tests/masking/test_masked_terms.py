"""The words that masks cover in real English, by the jobs from a collection to its importance."""

import importlib
import re
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest

from cdmae.collections.store import Collection, write_collection
from cdmae.config.objectives import Mae
from cdmae.files import read_json
from cdmae.tokens import vocabulary

SETTINGS = {"strategy": "importance", "ratio": 0.5, "sigma": 1.0, "max_length": 60}
FORMULA = {"pmi": "min", "normaliser": "order", "edges": "literal"}


def job(name, **inputs):
    importlib.import_module(f"workflow.scripts.{name}").main(**inputs)


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
    names = [str(row) for row in range(len(texts))]
    table = pa.table({"passage_id": names, "title": [""] * len(texts), "text": texts})
    write_collection(folder, Collection(table, {}, {}, {}))
    passages = folder / "passages.parquet"
    tokenizer = folder / "tokenizer"
    tokens = folder / "tokens"
    counted = folder / "ngrams"
    start = {"collection": "docs", "vocabulary": 3000, "strip_accents": True}
    job("tokenizer", settings=start, passages=passages, output=tokenizer)
    job("tokens", passages=passages, tokenizer=tokenizer, output=tokens, threads=2)
    job("ngrams", tokens=tokens, output=counted, unit="word", window=4, memory=4000)
    importance = folder / "importance"
    job("importance", tokens=tokens, ngrams=counted, formula=FORMULA, output=importance)
    return {"tokens": tokens, "tokenizer": tokenizer, "importance": importance}


def test_masking_by_importance_spares_stop_words_and_the_commonest_words(made, tmp_path):
    assert Mae(start="s", collection="c").masking() == SETTINGS | {"max_length": 150}
    job("masked_terms", **made, settings=SETTINGS, seed=42, output=tmp_path / "terms.json")
    found = read_json(tmp_path / "terms.json")
    uniform, aware = (found[name]["stop_word_share"] for name in ("uniform", "importance"))
    assert 0.35 < uniform < 0.6  # 40 % in the paper, section 3.2
    assert aware < 0.7 * uniform
    terms, shares = zip(*found["uniform"]["top"], strict=True)
    assert {"the", "."} <= set(terms)
    assert list(shares) == sorted(shares, reverse=True)
    assert found["importance"]["top"][0][1] < shares[0]


def test_the_tokenizer_of_a_checkpoint_is_copied(made, tmp_path):
    settings = {"checkpoint": str(made["tokenizer"])}
    job("tokenizer", settings=settings, passages=None, output=tmp_path / "copy")
    pieces = vocabulary.read_pieces(made["tokenizer"])
    assert vocabulary.read_pieces(tmp_path / "copy") == pieces
