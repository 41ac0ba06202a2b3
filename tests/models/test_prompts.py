"""Prompts of trained retrievers: training, search and sentence-transformers read one sequence."""

import numpy as np
import pytest
from tiny_tokenizers import KINDS
from tiny_training import stage, task_of, train

from cdmae.errors import InputError
from cdmae.models import checkpoint, sequences
from cdmae.models.sequences import Prompt
from cdmae.retrieval import vectors
from cdmae.tokens.vocabulary import read_backend

PROMPTS = {"query_prompt": "bada: ", "passage_prompt": "fika, gule: "}


@pytest.fixture
def prompted(tiny, tmp_path):
    recipe = stage("retriever", epochs=0.5, **PROMPTS)
    return train(tiny, tmp_path, recipe)


def test_sentence_transformers_gives_our_vectors(tiny, prompted, tmp_path):
    from sentence_transformers import SentenceTransformer

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
