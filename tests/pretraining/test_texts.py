"""Two texts of a passage: spans, or queries as context; and MASTER's texts in files."""

import gzip
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
from cdmae.pretraining import further
from cdmae.pretraining.further import Asked
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens, read_tokens, write_tokens
from cdmae.tokens.vocabulary import Vocabulary
from tests.naive import Naive

CONTEXT = {"context": "query", "decoder_masking": "whole_word"}
FILES = {"texts": ("queries.tsv", "continuations.tsv"), "decoder_masking": "uniform"}
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


def writing():
    """Three passages; the first has two texts in the first file, all share one in the second."""
    tokens = tokens_of((9, 12, 8, 3, 2, 4, 3, 2))
    every = np.arange(3)
    one = Asked(tokens, every, np.array([3, 4, 5, 6]), np.array([0, 2, 3, 4]))
    two = Asked(tokens, every, np.array([7, 7, 7]), np.array([0, 1, 2, 3]))
    settings = as_objective("master", SETTINGS, batch=3, max_length=12, **FILES)
    return reader_of(settings, tokens.part(0, 3), written=[one, two])


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


def test_both_spans_of_a_passage_get_its_written_text():
    """The first passage's two texts are drawn by turns; a text is read whole."""
    source = writing()
    ids, starts = source.store.ids, source.store.starts
    whole = {row: tuple(ids[starts[row] : starts[row + 1]].tolist()) for row in range(8)}
    drawn = set()
    for step in source.read(0, 12):
        masked = step.sides["text0"]
        found = [
            tuple(masked.labels[begin + 1 : end - 1].tolist()) for begin, end in bounds(masked)
        ]
        assert found[::2] == found[1::2]
        for text, row in zip(found, step.sides["decoder"].texts.rows.tolist(), strict=True):
            assert text in [whole[each] for each in {0: (3, 4), 1: (5,), 2: (6,)}[row % 3]]
        drawn |= {*found}
        assert step.sides["text1"].inputs.lengths.tolist() == [4] * 6
    assert drawn == {whole[row] for row in (3, 4, 5, 6)}


@pytest.mark.parametrize(
    ("name", "source", "changed"),
    [
        ("cotmae", asking, CONTEXT),
        ("cocondenser", lambda: asking("cocondenser"), CONTEXT),
        ("master", writing, FILES),
    ],
)
def test_the_loss_over_other_texts_is_its_naive_form(name, source, changed):
    network = network_of(name, **changed)
    (step,) = source().read(0, 1)
    same(network, learnt(network, step)[0], Naive(name, network)(step))


# --- a collection with queries and texts ----------------------------------------------------------


@pytest.fixture
def corpus(tmp_path, inputs):
    """A collection of six passages and three judged queries, its tokens, and two files of texts."""
    texts = [" ".join(f"w{(3 * row + n) % 45}" for n in range(8)) for row in range(6)]
    ids = [f"d{row}" for row in range(6)]
    passages = pa.table({"passage_id": ids, "title": [""] * 6, "text": texts}, PASSAGES)
    queries = pd.DataFrame({"query_id": ["a", "b", "c"], "text": ["w1 w2", "w7", "w20 w21 w22"]})
    judged = [("a", "d0", 1), ("b", "d0", 1), ("b", "d2", 0), ("c", "d4", 2)]
    qrels = pd.DataFrame(judged, columns=["query_id", "passage_id", "grade"])
    folder = tmp_path / "docs"
    write_collection(folder, Collection(passages, {"train": queries}, {"train": qrels}, {}))
    write_tokens(tmp_path / "tokens", tokenise.tokenise(passages, inputs["tokenizer"], 1))
    lines = [f"{name}\tw{row}\n" for row, name in enumerate(ids)]
    (tmp_path / "one.tsv").write_text("d1\tw9 w8\n" + "".join(reversed(lines)))
    with gzip.open(tmp_path / "two.tsv.gz", "wt") as file:
        file.write("".join(line.replace("\t", "\tw7 ") for line in lines))
    vocabulary = Vocabulary.read(inputs["tokenizer"])
    tokens = read_tokens(tmp_path / "tokens")
    return Corpus(tokens, vocabulary, inputs["tokenizer"], collection=folder)


def spelt(asked, row):
    starts = asked.tokens.starts
    pieces = asked.tokens.ids[starts[row] : starts[row + 1]]
    return " ".join(tiny_pretraining.PIECES[piece] for piece in pieces)


def test_relevant_queries_are_read(corpus):
    found = further.queries(corpus)
    assert found.passages.tolist() == [0, 4]
    assert found.queries.tolist() == [6, 7, 8]
    assert found.starts.tolist() == [0, 2, 3]
    assert spelt(found, 8) == "w20 w21 w22"
    assert found.drawn(np.array([0, 0, 4]), np.array([0.4, 0.6, 0.9])).tolist() == [6, 7, 8]


def test_texts_are_read_by_passage_id(corpus, tmp_path):
    files = [str(tmp_path / "one.tsv"), str(tmp_path / "two.tsv.gz")]
    one, two = further.written(files, corpus)
    found = one.drawn(np.array([0, 1, 1, 5]), np.array([0.5, 0.1, 0.9, 0.5]))
    assert [spelt(one, row) for row in found] == ["w0", "w9 w8", "w1", "w5"]
    assert [spelt(two, row) for row in two.queries] == [f"w7 w{row}" for row in range(6)]
    assert two.tokens is one.tokens


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("d0\tw1\nd1\tw1\n", r"bad.tsv has no text for 4 of 6 passages, such as d2; expected"),
        ("d0\tw1\nz\tw1\n", r"bad.tsv, line 2: the passage id is z; expected an id of the coll"),
        ("d0 w1\n", r"bad.tsv, line 1: 1 columns separated by tabs; expected "),
    ],
)
def test_bad_files_are_refused(corpus, tmp_path, content, message):
    (tmp_path / "bad.tsv").write_text(content)
    with pytest.raises(InputError, match=message):
        further.written([str(tmp_path / "bad.tsv")], corpus)


def test_a_collection_without_relevant_queries_is_refused(corpus, inputs, tmp_path):
    settings = as_objective("cotmae", tiny_pretraining.SETTINGS, **CONTEXT)
    qrels = corpus.collection / "qrels.parquet"
    frame = pd.read_parquet(qrels)
    frame.assign(grade=frame["grade"] * 0).to_parquet(qrels, index=False)
    with pytest.raises(InputError, match="has no passage with a relevant query of split train"):
        further.queries(corpus)
    with pytest.raises(InputError, match="objective cotmae needs a collection"):
        tiny_pretraining.run(inputs | {"tokens": tmp_path / "tokens"}, tmp_path, settings)


@pytest.mark.parametrize(
    ("name", "changed"),
    [("cotmae", CONTEXT), ("master", {"decoder_masking": "inverse_frequency"})],
)
def test_a_training_is_killed_and_resumes_with_the_same_bits(
    corpus, inputs, tmp_path, name, changed
):
    settings = as_objective(name, tiny_pretraining.SETTINGS, steps=4, batch=2, **changed)
    if name == "master":
        files = (str(tmp_path / "one.tsv"), str(tmp_path / "two.tsv.gz"))
        settings = replace(settings, texts=files)
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
        with pytest.raises(InputError, match=f"asking.context is query, but .*{masking} reads"):
            load(values)
    entry["decoder_masking"] = "whole_word"
    entry["collection"] = "unjudged"
    values["collections"]["unjudged"] = {"source": "toy", "size": 15}
    usual = toy.Settings.judged
    toy.Settings.judged = lambda settings: {} if settings.size == 15 else usual(settings)
    with pytest.raises(InputError, match="has no judged split train; expected neighbour"):
        load(values)


def test_texts_are_files_and_have_no_importance(values, tmp_path):
    file = tmp_path / "texts.tsv"
    entry = {"objective": "master", "texts": [str(file)], "decoder_masking": "whole_word"}
    values["encoders"]["written"] = entry
    with pytest.raises(InputError, match=r"encoders.written.texts .*, but .*texts.tsv is no file"):
        load(values)
    file.write_text("a\tw\n")
    encoder = load(values).encoders["written"]
    assert encoder.asked == encoder.collection
    entry["decoder_masking"] = "importance"
    with pytest.raises(InputError, match=r"written.texts .*, but .*importance reads importance"):
        load(values)
