"""MASTER's decoders of texts in files: format, refusals, and the loss."""

import gzip

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
from cdmae.pretraining.objectives.master import Master
from cdmae.pretraining.reader import Reader
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens, read_tokens, write_tokens

LENGTHS = (9, 12, 8, 3, 2, 4, 3, 2)  # of three passages; of four and one texts
FILES = {"texts": ("queries.tsv", "continuations.tsv"), "decoder_masking": "uniform"}


def reader() -> Reader:
    """Three passages; the first has two texts in the first file, all share one in the second."""
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    ids = (5 + np.arange(starts[-1]) % (V - 5)).astype(np.uint16)
    tokens = Tokens(ids, starts, starts[:-1], np.ones(V, bool))
    every = np.arange(3)
    first = Asked(tokens, every, np.array([3, 4, 5, 6]), np.array([0, 2, 3, 4]))
    second = Asked(tokens, every, np.array([7, 7, 7]), np.array([0, 1, 2, 3]))
    sides = Master.sides(as_objective("master", SETTINGS, **FILES), "word")
    how = {"batch": 3, "max_length": 12, "seed": 3, "written": [first, second]}
    return Reader(tokens.part(0, 3), {}, vocabulary(), sides, **how)


def test_both_spans_of_a_passage_get_its_text():
    """The first passage's two texts are drawn by turns; a text is read whole."""
    source = reader()
    ids = source.store.ids
    starts = source.store.starts
    whole = {row: tuple(ids[starts[row] : starts[row + 1]].tolist()) for row in range(8)}
    drawn = set()
    for step in source.read(0, 12):
        masked = step.sides["text0"]
        own = step.sides["decoder"]
        before = ()
        for text in range(6):
            cut = slice(masked.inputs.starts[text] + 1, masked.inputs.starts[text + 1] - 1)
            found = tuple(masked.labels[cut].tolist())
            passage = int(own.texts.rows[text]) % 3
            allowed = {0: (3, 4), 1: (5,), 2: (6,)}[passage]
            assert found in [whole[row] for row in allowed]
            drawn.add(found)
            if text % 2:
                assert found == before
            before = found
        last = step.sides["text1"]
        assert last.inputs.lengths.tolist() == [LENGTHS[7] + 2] * 6
    assert drawn == {whole[row] for row in (3, 4, 5, 6)}


def test_the_loss_is_its_naive_form():
    network = network_of("master", **FILES)
    (step,) = reader().read(0, 1)
    loss, numbers = learnt(network, step)
    same(network, loss, Naive("master", network)(step))
    torch_sum = numbers["encoder_loss"] + numbers["decoder_loss"]
    assert loss.item() == pytest.approx(torch_sum.item(), rel=1e-5)


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path, inputs):
    """A collection of four passages, its tokens, and two files of texts."""
    ids = ["a", "b", "c", "d"]
    texts = [" ".join(f"w{(5 * row + n) % 45}" for n in range(9)) for row in range(4)]
    passages = pa.table({"passage_id": ids, "title": [""] * 4, "text": texts}, PASSAGES)
    none = pd.DataFrame({"query_id": ["q"], "text": ["w1"]})
    write_collection(tmp_path / "docs", Collection(passages, {"train": none}, {}, {}))
    write_tokens(tmp_path / "tokens", tokenise.tokenise(passages, inputs["tokenizer"], 1))
    (tmp_path / "one.tsv").write_text("c\tw3\na\tw1 w2\nb\tw2\na\tw9\nd\tw4\n")
    with gzip.open(tmp_path / "two.tsv.gz", "wt") as file:
        file.write("".join(f"{name}\tw7 w8 w{row}\n" for row, name in enumerate(ids)))
    return tmp_path


def read(folder, inputs, *names):
    tokens = read_tokens(folder / "tokens")
    files = [str(folder / name) for name in names]
    return further.written(files, folder / "docs", tokens, inputs["tokenizer"])


def test_texts_are_read_by_passage_id(written, inputs):
    one, two = read(written, inputs, "one.tsv", "two.tsv.gz")
    starts = one.tokens.starts

    def text(row):
        pieces = one.tokens.ids[starts[row] : starts[row + 1]]
        return " ".join(tiny_pretraining.PIECES[piece] for piece in pieces)

    draws = np.array([0.1, 0.9, 0.5, 0.5, 0.5])
    found = [text(row) for row in one.drawn(np.array([0, 0, 1, 2, 3]), draws)]
    assert found == ["w1 w2", "w9", "w2", "w3", "w4"]
    assert [text(row) for row in two.drawn(np.arange(4), draws[:4])] == [
        f"w7 w8 w{row}" for row in range(4)
    ]
    assert two.tokens is one.tokens


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tw1\nb\tw1\n", r"bad.tsv has no text for 2 of 4 passages, such as c; allowed"),
        ("a\tw1\nz\tw1\n", r"bad.tsv, line 2: the passage id is z; allowed: an id of the coll"),
        ("a w1\n", r"bad.tsv, line 1: 1 columns separated by tabs; allowed: passage_id, "),
    ],
)
def test_bad_files_are_refused(written, inputs, content, message):
    (written / "bad.tsv").write_text(content)
    with pytest.raises(InputError, match=message):
        read(written, inputs, "bad.tsv")


def test_a_training_is_killed_and_resumes_with_the_same_bits(written, inputs):
    files = (str(written / "one.tsv"), str(written / "two.tsv.gz"))
    settings = as_objective(
        "master",
        tiny_pretraining.SETTINGS,
        steps=4,
        batch=2,
        texts=files,
        decoder_masking="inverse_frequency",
    )
    inputs = inputs | {"tokens": written / "tokens"}
    how = {"asked": written / "docs"}
    whole = tiny_pretraining.run(inputs, written / "whole", settings, **how)
    tiny_pretraining.cut_off(2, inputs, written / "cut", settings, **how)
    again = tiny_pretraining.run(inputs, written / "cut", settings, **how)
    assert tiny_pretraining.differences(whole, again) == []


def test_what_the_config_refuses(values, tmp_path):
    file = tmp_path / "texts.tsv"
    entry = {"objective": "master", "texts": [str(file)], "decoder_masking": "whole_word"}
    values["encoders"]["written"] = entry
    with pytest.raises(InputError, match=r"encoders.written.texts .*, but .*texts.tsv is no file"):
        load(values)
    file.write_text("a\tw\n")
    encoder = load(values).encoders["written"]
    assert encoder.asked == encoder.collection
    entry["decoder_masking"] = "importance"
    with pytest.raises(InputError, match=r"encoders.written.texts .*, but a masking is importance"):
        load(values)
