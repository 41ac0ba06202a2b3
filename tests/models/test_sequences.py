"""What the models read, prompts included, equals what transformers' tokenizer would give them."""

import numpy as np
import pytest
from tiny_tokenizers import KINDS
from tiny_training import stage, untrained
from transformers import AutoModel

from cdmae.errors import InputError
from cdmae.models import checkpoint, sequences
from cdmae.models.sequences import Prompt
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


@pytest.mark.parametrize("length", [16, 17, 40, 192])
def test_a_pair_is_cut_like_transformers_cuts_it(folder, texts, length):
    hf = tokenise.load_tokenizer(folder)
    texts = [*texts[:20], SENTENCE, *texts[20:]]  # the one in the middle is in a pair with itself
    source = sequences.tokenised(texts, tokenise.Tokeniser(folder))
    first, second = np.arange(41), np.arange(41)[::-1].copy()
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
    queries = sequences.tokenised(tiny.queries, tokenise.Tokeniser(tiny.encoder))
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
