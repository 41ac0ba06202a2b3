"""What the masks fall on: importance must not select stop-words, the scripts' whole chain on real
English.
"""

import importlib.util
import json
import re
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest

from cdmae.collections.store import Collection, write_collection
from cdmae.config.objectives import Mae
from cdmae.importance import ami, ngrams
from cdmae.masking import terms
from cdmae.tokens import tokenise, vocabulary
from cdmae.tokens.corpus import read_tokens, write_tokens

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"
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
    return terms.describe(*where, settings=SETTINGS, seed=42)


def test_masking_by_importance_spares_stop_words_and_the_commonest_words(found):
    uniform, aware = (found[name]["stop_word_share"] for name in ("uniform", "importance"))
    assert 0.35 < uniform < 0.6  # 40 % in the paper, section 3.2
    assert aware < 0.7 * uniform
    terms_, shares = zip(*found["uniform"]["top"], strict=True)
    assert {"the", "."} <= set(terms_)
    assert list(shares) == sorted(shares, reverse=True)
    assert found["importance"]["top"][0][1] < shares[0]


def script(name):
    spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def test_the_scripts_write_what_the_library_does(made, found, tmp_path):
    inputs = {"tokens": made / "tokens", "tokenizer": made / "tokenizer"}
    passages = made / "collection/passages.parquet"
    read = {"passages": passages, "tokenizer": made / "tokenizer"}
    script("tokens")(**read, output=tmp_path / "tokens", threads=2)
    how = {"unit": "word", "window": 4, "memory": 4000}
    script("ngrams")(tokens=made / "tokens", output=tmp_path / "ngrams", **how)
    counted = {"tokens": made / "tokens", "ngrams": tmp_path / "ngrams"}
    script("importance")(**counted, formula=FORMULA, output=tmp_path / "importance")
    for name in ("tokens", "ngrams", "importance"):
        for path in sorted((made / name).iterdir()):
            assert path.read_bytes() == (tmp_path / name / path.name).read_bytes(), path.name
    inputs["importance"] = made / "importance"
    script("masked_terms")(**inputs, settings=SETTINGS, seed=42, output=tmp_path / "terms")
    assert json.loads((tmp_path / "terms").read_text()) == found
    assert Mae(start="s", collection="c").masking() == SETTINGS | {"max_length": 150}
    start = {"collection": "docs", "vocabulary": 3000, "strip_accents": True}
    make = script("tokenizer")
    make(settings=start, passages=passages, output=tmp_path / "tokenizer")
    copied = {"checkpoint": str(made / "tokenizer")}
    make(settings=copied, passages=None, output=tmp_path / "copy")
    pieces = vocabulary.read_pieces(made / "tokenizer")
    for name in ("tokenizer", "copy"):
        assert vocabulary.read_pieces(tmp_path / name) == pieces
