"""What the models read, prompts included, equals what transformers' tokenizer would give them."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from tiny_tokenizers import KINDS
from tiny_training import stage, task_of, train, untrained
from transformers import AutoModel

from cdmae.errors import InputError
from cdmae.models import checkpoint, sequences
from cdmae.models.ragged import Ragged
from cdmae.models.sequences import Prompt
from cdmae.retrieval import vectors
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary, read_backend

SENTENCE = "the quick brown fox jumps over a lazy dog while seventeen more of them sleep in an old barn near it"
WORDS = SENTENCE.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer")
    tokenise.train_tokenizer([" ".join(WORDS)] * 3, 90).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def texts():
    generator = np.random.default_rng(1)
    return [" ".join(generator.choice(WORDS, size)) for size in generator.integers(1, 25, 40)]


def test_a_passage_is_cls_title_text_sep_cut_to_length(folder, texts):
    hf = tokenise.load_tokenizer(folder)
    titles = [text if row % 3 else "" for row, text in enumerate(reversed(texts))]
    source = tokenise.tokenise(pa.table({"title": titles, "text": texts}), folder, 1)
    rows = np.array([3, 0, 39, 7, 7])
    found = sequences.frame(
        Ragged(source.ids, source.starts).take(rows, 28), Vocabulary.read(folder)
    )
    joined = [f"{titles[row]} {texts[row]}" for row in rows]
    expected = hf(joined, truncation=True, max_length=30)["input_ids"]
    assert np.split(found.values, found.starts[1:-1])[2].tolist() == expected[2]
    assert found.values.tolist() == sum(expected, [])
    assert found.lengths.tolist() == [len(each) for each in expected]


@pytest.mark.parametrize("length", [16, 17, 40, 192])
def test_a_pair_is_cut_like_transformers_cuts_it(folder, texts, length):
    hf = tokenise.load_tokenizer(folder)
    source = sequences.queries(texts, folder, 1)
    first, second = np.arange(40), np.arange(40)[::-1].copy()
    found = sequences.pairs(source, first, source, second, length, Vocabulary.read(folder))
    expected = hf(
        texts,
        texts[::-1],
        truncation="longest_first",
        max_length=length,
        return_token_type_ids=True,
    )
    assert found.values.tolist() == sum(expected["input_ids"], [])
    assert found.types.tolist() == sum(expected["token_type_ids"], [])


# --- prompts --------------------------------------------------------------------------------------


PROMPTS = {"query_prompt": "bada: ", "passage_prompt": "fika, gule: "}


def test_sentence_transformers_gives_our_vectors(tiny, tmp_path):
    from sentence_transformers import SentenceTransformer

    prompted = train(tiny, tmp_path, stage("retriever", epochs=0.5, **PROMPTS))
    theirs = SentenceTransformer(str(prompted))
    theirs[0].query_length = 16
    ours = vectors.encode_queries(prompted, tiny.queries)
    np.testing.assert_allclose(theirs.encode_query(tiny.queries), ours, atol=1e-5)
    passages = np.concatenate(
        [shard[:] for shard in vectors.Encoder({"model": prompted}).passages(tiny.tokens)]
    )
    np.testing.assert_allclose(theirs.encode_document(tiny.passages), passages, atol=1e-5)
    plain = theirs.encode(tiny.queries)
    assert np.abs(plain - ours).max() > 0.1


def test_training_reads_what_the_tokenizer_makes_of_prompt_and_text(tiny, tmp_path):
    recipe = stage("retriever", **PROMPTS)
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    task = task_of(tiny, recipe, model)
    data = task.data
    rows = np.arange(4)
    read = task.draw(rows, 0).sequences
    pieces = read_backend(tiny.encoder)
    query = PROMPTS["query_prompt"] + tiny.queries[data.examples.queries[0]]
    passage = PROMPTS["passage_prompt"] + tiny.passages[data.examples.draw(rows, 0)[0, 0]]
    for sequence, text, length in ((read[0], query, 16), (read[4], passage, 32)):
        pieces.enable_truncation(length)
        assert sequence.tolist() == pieces.encode(text).ids


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_and_a_text_have_the_word_pieces_of_both_together(kind, tmp_path):
    KINDS[kind]().save_pretrained(tmp_path)
    by_bytes = kind in ("byte_level", "modern")
    prompt, wrong = ("e-mail:\n", "e-mail: ") if by_bytes else ("e-mail: ", "e-mail")
    pieces = read_backend(tmp_path)
    text = "The masked one."
    own, whole = (
        pieces.encode(part, add_special_tokens=False).ids for part in (text, prompt + text)
    )
    assert [*Prompt.read(prompt, tmp_path).ids, *own] == whole
    with pytest.raises(InputError, match="the end of the prompt .* line break"):
        Prompt.read(wrong, tmp_path)


def test_a_prompt_that_fills_the_length_is_refused(tiny):
    recipe = stage("retriever", query_prompt="babebibobubabebibobubabebibobu: ")
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    queries = sequences.queries(tiny.queries, tiny.encoder, 1)
    assert len(model.prompts["query_prompt"].ids) > 6
    short = checkpoint.at(model, 8)
    with pytest.raises(InputError, match="^query_prompt .* of 8 word-pieces; expected"):
        sequences.texts(short, "query", queries, np.arange(1))


# --- folders --------------------------------------------------------------------------------------


def test_check_says_what_the_folder_is_and_automodel_finds_every_weight(
    tiny, tmp_path, capfd, caplog
):
    retriever = untrained(tmp_path / "retriever", tiny.encoder, stage("retriever"))
    capfd.readouterr()
    assert not AutoModel.from_pretrained(retriever).pooler.dense.weight.any()
    assert "MISSING" not in capfd.readouterr().err + caplog.text
    found = checkpoint.check(retriever, "retriever")
    lengths = {"query_length": 16, "passage_length": 32, "precision": "fp32"}
    kinds = {"head": "dense", "pooling": "cls", "similarity": "dot"}
    assert (lengths | kinds).items() <= found.items()
    with pytest.raises(InputError, match="contains a retriever, not a reranker"):
        checkpoint.check(retriever, "reranker")
    with pytest.raises(InputError, match="no cdmae.json"):
        checkpoint.load(tiny.encoder, "retriever")


def test_searching_stored_vectors_imports_no_transformers():
    """Its import takes longer than the search of a small collection."""
    program = "import sys; from cdmae.retrieval import search, vectors; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
