"""Two texts of a passage: spans, or queries as context."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tiny_pretraining
from any_kind import as_objective
from tiny_objectives import LENGTHS, SETTINGS, V, bounds, first, learnt, network_of, reader_of, same

from cdmae.collections.store import PASSAGES, Collection, write_collection
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.masking import Corpus
from cdmae.pretraining.objectives._contexts import Asked
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens, read_tokens, write_tokens
from cdmae.tokens.vocabulary import Vocabulary
from tests.naive import Naive

CONTEXT = {"context": "query", "decoder_masking": "whole_word"}
SIZES = (6, 4, 8, 3, 5, 2, 1, 3)  # of five passages and three queries
ASKED = {0: [5], 2: [6, 7], 3: [5]}  # the queries of each passage that has one


def tokens_of(sizes):
    """Passages and texts of different word-pieces."""
    starts = np.cumsum([0, *sizes])
    return Tokens(
        (5 + np.arange(starts[-1]) % 35).astype(np.uint16), starts, starts[:-1], np.ones(V, bool)
    )


def asking(name="cotmae"):
    """Passages 0 to 4, of which three have queries, 5 to 7."""
    tokens = tokens_of(SIZES)
    queries = np.array([query for found in ASKED.values() for query in found])
    asked = Asked(tokens, np.array(list(ASKED)), queries, np.array([0, 1, 3, 4]))
    settings = as_objective(name, SETTINGS, batch=3, max_length=12, **CONTEXT)
    return reader_of(settings, tokens.part(0, 5), asked=asked)


# --- reading --------------------------------------------------------------------------------------


def test_an_empty_last_passage_has_two_empty_spans():
    step = first("cotmae", lengths=(*LENGTHS[:-1], 0))
    sizes = [end - begin for begin, end in bounds(step.sides["encoder"])]
    assert sizes.count(2) >= 2  # [CLS] and [SEP] alone


def test_passages_without_queries_are_not_read_and_queries_are_drawn_anew():
    """Every epoch has the three passages; over the epochs both queries of passage 2 occur."""
    source = asking()
    assert len(source) == 3
    starts = source.store.starts.tolist()
    drawn = set()
    for epoch in range(12):
        texts = source.texts(*reversed(source.passages(np.arange(3 * epoch, 3 * epoch + 3))))
        found = [starts.index(begin) for begin in texts.begins.tolist()]
        assert sorted(found[::2]) == [0, 2, 3]
        drawn |= {*zip(found[::2], found[1::2], strict=True)}
        assert texts.lengths.tolist() == [SIZES[row] for row in found]
    assert drawn == {(passage, query) for passage, found in ASKED.items() for query in found}


def test_the_decoder_restores_the_other_text():
    (step,) = asking().read(0, 1)
    encoder, decoder = (step.sides[name].labels for name in ("encoder", "decoder"))
    own, other = (bounds(step.sides[name]) for name in ("encoder", "decoder"))
    for text in range(6):
        expected = encoder[slice(*own[text])].tolist()
        assert decoder[slice(*other[text ^ 1])].tolist() == expected


@pytest.mark.parametrize("name", ["cotmae", "cocondenser"])
def test_the_loss_over_queries_is_its_naive_form(name):
    network = network_of(name, **CONTEXT)
    (step,) = asking(name).read(0, 1)
    same(network, learnt(network, step)[0], Naive(name, network)(step))


# --- a collection with queries and texts ----------------------------------------------------------


@pytest.fixture
def corpus(tmp_path, inputs):
    """A collection of six passages and three judged queries, and its tokens."""
    texts = [" ".join(f"w{(3 * row + n) % 45}" for n in range(8)) for row in range(6)]
    ids = [f"d{row}" for row in range(6)]
    passages = pa.table({"passage_id": ids, "title": [""] * 6, "text": texts}, PASSAGES)
    queries = pd.DataFrame({"query_id": ["a", "b", "c"], "text": ["w1 w2", "w7", "w20 w21 w22"]})
    judged = [("a", "d0", 1), ("b", "d0", 1), ("b", "d2", 0), ("c", "d4", 2)]
    qrels = pd.DataFrame(judged, columns=["query_id", "passage_id", "grade"])
    folder = tmp_path / "docs"
    write_collection(folder, Collection(passages, {"train": queries}, {"train": qrels}, {}))
    write_tokens(tmp_path / "tokens", tokenise.tokenise(passages, inputs["tokenizer"], 1))
    vocabulary = Vocabulary.read(inputs["tokenizer"])
    tokens = read_tokens(tmp_path / "tokens")
    return Corpus(tokens, vocabulary, inputs["tokenizer"], collection=folder)


def spelt(asked, row):
    starts = asked.tokens.starts
    pieces = asked.tokens.ids[starts[row] : starts[row + 1]]
    return " ".join(tiny_pretraining.PIECES[piece] for piece in pieces)


def test_relevant_queries_are_read(corpus):
    found = Asked.read(corpus)
    assert found.passages.tolist() == [0, 4]
    assert found.queries.tolist() == [6, 7, 8]
    assert found.starts.tolist() == [0, 2, 3]
    assert spelt(found, 8) == "w20 w21 w22"
    assert found.drawn(np.array([0, 0, 4]), np.array([0.4, 0.6, 0.9])).tolist() == [6, 7, 8]


def test_a_collection_without_relevant_queries_is_refused(corpus):
    qrels = corpus.collection / "qrels.parquet"
    frame = pd.read_parquet(qrels)
    frame.assign(grade=frame["grade"] * 0).to_parquet(qrels, index=False)
    with pytest.raises(InputError, match="has no passage with a relevant query of split train"):
        Asked.read(corpus)


def test_a_training_is_killed_and_resumes_with_the_same_bits(corpus, inputs, tmp_path):
    settings = as_objective("cotmae", tiny_pretraining.SETTINGS, steps=4, batch=2, **CONTEXT)
    inputs = inputs | {"tokens": tmp_path / "tokens", "asked": corpus.collection}
    whole = tiny_pretraining.run(inputs, tmp_path / "whole", settings)
    tiny_pretraining.cut_off(2, inputs, tmp_path / "cut", settings)
    again = tiny_pretraining.run(inputs, tmp_path / "cut", settings)
    assert tiny_pretraining.differences(whole, again) == []


# --- what the config refuses ----------------------------------------------------------------------


def test_context_query_needs_judgments_and_masks_without_importance(values, toy):
    entry = {"objective": "cotmae", "context": "query", "decoder_masking": "whole_word"}
    values["encoders"]["asking"] = entry
    encoder = load(values).encoders["asking"]
    assert encoder.asked == encoder.collection
    assert replace(encoder, context="neighbour").asked == ""
    for masking in ("importance", "pmi_span"):
        entry["decoder_masking"] = masking
        with pytest.raises(InputError, match="importance is ami, which queries do not have"):
            load(values)
    entry["decoder_masking"] = "whole_word"
    entry["collection"] = "unjudged"
    values["collections"]["unjudged"] = {"source": "toy", "size": 15}
    usual = toy.Settings.judged
    toy.Settings.judged = lambda settings: {} if settings.size == 15 else usual(settings)
    with pytest.raises(InputError, match="has no judged split train; expected neighbour"):
        load(values)
