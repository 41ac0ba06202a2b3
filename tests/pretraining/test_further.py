"""Query as context: a passage and one of its queries instead of two spans."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tiny_pretraining
from any_kind import as_objective
from tiny_objectives import SETTINGS, V, learnt, network_of, same, vocabulary

from benchmarks.naive import Naive
from cdmae.collections.store import PASSAGES, Collection, write_collection
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.pretraining import further
from cdmae.pretraining.further import Asked
from cdmae.pretraining.objectives import objective
from cdmae.pretraining.reader import Reader
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens, write_tokens

LENGTHS = (6, 4, 8, 3, 5, 2, 1, 3)  # of five passages and three queries
ASKED = {0: [5], 2: [6, 7], 3: [5]}  # the queries of each passage that has one
CONTEXT = {"context": "query", "decoder_masking": "whole_word"}


def pairs() -> Asked:
    """Passages 0 to 4 of which three have queries, 5 to 7; all word-pieces are different."""
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    ids = (5 + np.arange(starts[-1])).astype(np.uint16)
    queries = np.array([query for found in ASKED.values() for query in found])
    tokens = Tokens(ids, starts, starts[:-1], np.ones(V, bool))
    return Asked(tokens, np.array(list(ASKED)), queries, np.array([0, 1, 3, 4]))


def reader(name: str = "cotmae", batch: int = 3) -> Reader:
    asked = pairs()
    settings = as_objective(name, SETTINGS, **CONTEXT)
    sides = objective(name).sides(settings, "word")
    passages = asked.tokens.part(0, 5)
    how = {"batch": batch, "max_length": 12, "seed": 3}
    return Reader(passages, {}, vocabulary(), sides, asked=asked, **how)


def test_passages_without_queries_are_not_read_and_queries_are_drawn_anew():
    """Every epoch has the three passages; over the epochs both queries of passage 2 occur."""
    source = reader()
    assert len(source) == 3
    starts = source.store.starts.tolist()
    drawn = set()
    for epoch in range(12):
        texts = source.texts(*reversed(source.passages(np.arange(3 * epoch, 3 * epoch + 3))))
        found = [starts.index(begin) for begin in texts.begins.tolist()]
        assert sorted(found[::2]) == [0, 2, 3]
        for passage, query in zip(found[::2], found[1::2], strict=True):
            assert query in ASKED[passage]
            drawn.add((passage, query))
        assert texts.lengths.tolist() == [LENGTHS[row] for row in found]
    assert drawn == {(0, 5), (2, 6), (2, 7), (3, 5)}


def test_the_decoder_restores_the_other_text():
    (step,) = reader().read(0, 1)
    encoder, decoder = (step.sides[name].labels for name in ("encoder", "decoder"))
    starts = [step.sides[name].inputs.starts for name in ("encoder", "decoder")]
    for text in range(6):
        own = encoder[starts[0][text] : starts[0][text + 1]]
        other = decoder[starts[1][text ^ 1] : starts[1][(text ^ 1) + 1]]
        assert own.tolist() == other.tolist()


@pytest.mark.parametrize("name", ["cotmae", "cocondenser"])
def test_it_is_the_naive_form_over_other_texts(name):
    network = network_of(name, **CONTEXT)
    (step,) = reader(name).read(0, 1)
    same(network, learnt(network, step)[0], Naive(name, network)(step))


# --- a collection ---------------------------------------------------------------------------------


@pytest.fixture
def collection(tmp_path, inputs):
    """A collection of six passages and three judged queries; its tokens are next to it."""
    texts = [" ".join(f"w{(3 * row + n) % 45}" for n in range(8)) for row in range(6)]
    ids = [f"d{row}" for row in range(6)]
    passages = pa.table({"passage_id": ids, "title": [""] * 6, "text": texts}, PASSAGES)
    queries = pd.DataFrame({"query_id": ["a", "b", "c"], "text": ["w1 w2", "w7", "w20 w21 w22"]})
    judged = [("a", "d0", 1), ("b", "d0", 1), ("b", "d2", 0), ("c", "d4", 2)]
    qrels = pd.DataFrame(judged, columns=["query_id", "passage_id", "grade"])
    write_collection(
        tmp_path / "docs", Collection(passages, {"train": queries}, {"train": qrels}, {})
    )
    write_tokens(tmp_path / "tokens", tokenise.tokenise(passages, inputs["tokenizer"], 1))
    return tmp_path / "docs"


def test_relevant_queries_are_read(collection, inputs, tmp_path):
    from cdmae.tokens.corpus import read_tokens

    tokens = read_tokens(tmp_path / "tokens")
    found = further.read(collection, tokens, inputs["tokenizer"])
    assert found.passages.tolist() == [0, 4]
    assert found.queries.tolist() == [6, 7, 8]
    assert found.starts.tolist() == [0, 2, 3]
    starts = found.tokens.starts
    pieces = [tiny_pretraining.PIECES[piece] for piece in found.tokens.ids[starts[8] : starts[9]]]
    assert pieces == ["w20", "w21", "w22"]
    assert found.drawn(np.array([0, 0, 4]), np.array([0.4, 0.6, 0.9])).tolist() == [6, 7, 8]


def test_a_training_is_killed_and_resumes_with_the_same_bits(collection, inputs, tmp_path):
    settings = as_objective("cotmae", tiny_pretraining.SETTINGS, steps=4, batch=2, **CONTEXT)
    inputs = inputs | {"tokens": tmp_path / "tokens"}
    whole = tiny_pretraining.run(inputs, tmp_path / "whole", settings, asked=collection)
    tiny_pretraining.cut_off(2, inputs, tmp_path / "cut", settings, asked=collection)
    again = tiny_pretraining.run(inputs, tmp_path / "cut", settings, asked=collection)
    assert tiny_pretraining.differences(whole, again) == []


def test_a_collection_without_relevant_queries_is_refused(collection, inputs, tmp_path):
    settings = as_objective("cotmae", tiny_pretraining.SETTINGS, **CONTEXT)
    frame = pd.read_parquet(collection / "qrels.parquet")
    frame.assign(grade=frame["grade"] * 0).to_parquet(collection / "qrels.parquet", index=False)
    inputs = inputs | {"tokens": tmp_path / "tokens"}
    with pytest.raises(InputError, match="has no passage with a relevant query of split train"):
        tiny_pretraining.run(inputs, tmp_path, settings, asked=collection)
    with pytest.raises(InputError, match="objective cotmae needs a collection"):
        tiny_pretraining.run(inputs, tmp_path, settings)


def test_what_the_config_refuses(values, toy):
    entry = {"objective": "cotmae", "context": "query", "decoder_masking": "whole_word"}
    values["encoders"]["asking"] = entry
    encoder = load(values).encoders["asking"]
    assert encoder.asked == encoder.collection
    assert replace(encoder, context="neighbour").asked == ""
    entry["decoder_masking"] = "importance"
    with pytest.raises(InputError, match=r"encoders.asking.context is query, but a masking is imp"):
        load(values)
    entry["decoder_masking"] = "whole_word"
    entry["collection"] = "unjudged"
    values["collections"]["unjudged"] = {"source": "toy", "size": 15}
    usual = toy.Settings.judged
    toy.Settings.judged = lambda settings: {} if settings.size == 15 else usual(settings)
    with pytest.raises(InputError, match="has no judged split train; expected neighbour"):
        load(values)
