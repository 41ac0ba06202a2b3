"""What the masks fall on: importance must not select stop-words, the scripts' whole chain on real
English.
"""

import importlib.util
import json
import math
import re
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from cdmae import masking
from cdmae.collections.store import Collection, write_collection
from cdmae.config.objectives.mae import Mae
from cdmae.importance import ami, ngrams
from cdmae.masking import terms as masked_terms
from cdmae.tokens import tokenise, vocabulary
from cdmae.tokens.corpus import read_tokens, write_tokens

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"
EXAMPLE = "hokey stuff is a crossword puzzle clue that we have spotted 4 times"
SETTINGS = {"decoder_ratio": 0.5, "sigma": 1.0, "max_length": 60}
FORMULA = {"pmi": "min", "normaliser": "order", "edges": "literal"}


def english():
    """Passages of English that every Python brings along: the documentation strings of its library."""
    found = set()
    for path in sorted(Path(textwrap.__file__).parent.glob("[c-s]*.py"))[:70]:
        for text in re.findall(
            r'^ *"""(.+?)"""', path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
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
    read = read_tokens(made / "tokens")
    where = made / "tokenizer", made / "importance"
    return masked_terms.describe(read, *where, settings=SETTINGS, seed=42, example=EXAMPLE)


def test_masking_by_importance_spares_stop_words_the_commonest_masked_terms(found):
    uniform, aware = (found[name]["stop_word_share"] for name in ("uniform", "importance"))
    assert 0.35 < uniform < 0.6  # 40 % in the paper, section 3.2
    assert aware < 0.7 * uniform
    terms = [term for term, _ in found["uniform"]["top"]]
    assert len(terms) == masked_terms.TOP
    assert {"the", "."} <= set(terms)
    shares = [share for _, share in found["uniform"]["top"]]
    assert shares == sorted(shares, reverse=True)
    assert found["importance"]["top"][0][1] < shares[0]


def test_entropy_is_that_of_the_masked_word_pieces(found):
    assert masked_terms._entropy(np.array([3, 3, 5, 5, 7, 7, 9, 9])) == 2.0
    assert masked_terms._entropy(np.array([4, 4, 4])) == 0.0
    assert masked_terms._entropy(np.array([1, 1, 1, 2])) == pytest.approx(
        0.811, abs=1e-3
    )  # -3/4 log 3/4 - 1/4 log 1/4
    assert found["sigma"]["inf"]["entropy"] == pytest.approx(found["uniform"]["entropy"], abs=0.1)


def test_the_share_grows_and_the_overlap_falls_with_the_noise(found):
    sweep = list(found["sigma"].items())
    assert [sigma for sigma, _ in sweep] == ["0", "1", "2", "4", "inf"]
    shares, overlaps = (
        [each[name] for _, each in sweep] for name in ("stop_word_share", "overlap")
    )
    assert shares == sorted(shares)
    assert overlaps == sorted(overlaps, reverse=True)
    assert overlaps[0] == 1
    assert overlaps[-1] == pytest.approx(0.5, abs=0.02)
    assert shares[-1] == pytest.approx(found["uniform"]["stop_word_share"], abs=0.02)


def test_the_example_is_masked_by_its_importance(found):
    example = found["example"]
    assert example["words"] == EXAMPLE.split()
    assert np.abs(np.array(example["uniform"]) - 0.5).max() < 0.12
    assert stats.spearmanr(example["importance"], example["importance_aware"]).statistic > 0.7
    assert max(example["importance_aware"]) > 0.9
    assert min(example["importance_aware"]) < 0.1


def test_passages_show_the_masks_that_a_training_draws_in_two_epochs(made, found):
    read = read_tokens(made / "tokens")
    words = vocabulary.Vocabulary.read(made / "tokenizer")
    values = ami.read_values(made / "importance")
    side = masking.Side("importance", SETTINGS["decoder_ratio"], sigma=SETTINGS["sigma"])
    rows = np.arange(len(read))
    batch = masking.read(read, rows, SETTINGS["max_length"] - 2, words, values)
    masks = [
        masking.strategy("importance").select(batch, side, masking.key(42, "decoder", epoch))
        for epoch in range(2)
    ]
    assert len(found["passages"]) == masked_terms.PASSAGES
    for passage, row in zip(found["passages"], masked_terms._typical(batch), strict=True):
        begins = np.flatnonzero(batch.word_starts[row])
        assert len(passage["words"]) == len(passage["importance"]) == len(begins)
        for masked, mask in zip(passage["masked"], masks, strict=True):
            assert masked == np.flatnonzero(mask[row, begins]).tolist()
        assert passage["masked"][0] != passage["masked"][1]


def test_an_empty_example(made):
    read = read_tokens(made / "tokens")
    given = {"settings": SETTINGS | {"sigma": math.inf}, "seed": 1, "example": " "}
    found = masked_terms.describe(read, made / "tokenizer", made / "importance", **given)
    assert found["example"]["words"] == []
    assert list(found["sigma"]) == ["0", "1", "2", "4", "inf"]


def script(name):
    spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def test_the_scripts_write_what_the_library_does(made, found, tmp_path):
    settings = {"unit": "word", "window": 4}
    inputs = {"tokens": made / "tokens", "tokenizer": made / "tokenizer"}
    read = {"collection": made / "collection", "tokenizer": made / "tokenizer"}
    script("tokens")(**read, output=tmp_path / "tokens", threads=2)
    script("ngrams")(
        tokens=made / "tokens", settings=settings, output=tmp_path / "ngrams", memory=4000
    )
    counts = {"ngrams": tmp_path / "ngrams", "tokens": made / "tokens"}
    script("importance")(**counts, settings=settings | FORMULA, output=tmp_path / "importance")
    inputs["importance"] = made / "importance"
    script("masked_terms")(
        **inputs, settings=SETTINGS, seed=42, example=EXAMPLE, output=tmp_path / "terms"
    )
    for name in ("tokens", "ngrams", "importance"):
        for path in sorted((made / name).iterdir()):
            assert path.read_bytes() == (tmp_path / name / path.name).read_bytes(), path.name
    assert json.loads((tmp_path / "terms").read_text()) == found
    assert SETTINGS.keys() == Mae(start="s", collection="c").masking().keys(), (
        "what the job is told"
    )
    start = {"collection": "docs", "vocabulary": 3000}
    script("tokenizer")(
        settings=start, prompted={}, collection=made / "collection", output=tmp_path / "tokenizer"
    )
    assert vocabulary.read_pieces(tmp_path / "tokenizer") == vocabulary.read_pieces(
        made / "tokenizer"
    )
    script("tokenizer")(
        settings={"checkpoint": str(made / "tokenizer")}, prompted={}, output=tmp_path / "copy"
    )
    assert vocabulary.read_pieces(tmp_path / "copy") == vocabulary.read_pieces(made / "tokenizer")
