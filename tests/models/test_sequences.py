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


@pytest.mark.parametrize("length", [16, 17, 40, 192])
def test_a_pair_is_cut_like_transformers_cuts_it(tmp_path, length):
    tokenise.train_tokenizer([SENTENCE] * 3, 90).save_pretrained(tmp_path)
    hf = tokenise.load_tokenizer(tmp_path)
    draw = np.random.default_rng(1)
    texts = [" ".join(draw.choice(SENTENCE.split(), size)) for size in draw.integers(1, 25, 40)]
    texts.insert(20, SENTENCE)  # the one in the middle is in a pair with itself
    source = sequences.tokenised(texts, tokenise.Tokeniser(tmp_path))
    first, second = np.arange(41), np.arange(41)[::-1].copy()
    found = sequences.pairs(source, first, source, second, length, Vocabulary.read(tmp_path))
    expected = hf(
        texts,
        texts[::-1],
        truncation="longest_first",
        max_length=length,
        return_token_type_ids=True,
    )
    assert found.values.tolist() == sum(expected["input_ids"], [])
    assert found.types.tolist() == sum(expected["token_type_ids"], [])


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


def test_check_says_what_the_folder_is_and_automodel_finds_a_pooler(tiny, tmp_path):
    retriever = untrained(tmp_path / "retriever", tiny.encoder, stage("retriever"))
    assert not AutoModel.from_pretrained(retriever).pooler.dense.weight.any()
    found = checkpoint.check(retriever, "retriever")
    assert {"query_length": 16, "head": "dense", "pooling": "cls"}.items() <= found.items()
    with pytest.raises(InputError, match="contains a retriever, not a reranker"):
        checkpoint.check(retriever, "reranker")
    with pytest.raises(InputError, match="no cdmae.json"):
        checkpoint.load(tiny.encoder, "retriever")
