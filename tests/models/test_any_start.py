"""A checkpoint of every architecture with its kind of tokenizer: as a start, a retriever and a
reranker.
"""

import numpy as np
import pytest
import torch
from tiny_models import model
from tiny_pretraining import started
from tiny_tokenizers import KINDS, TEXTS
from tiny_training import stage, untrained

from cdmae.config import pretrained
from cdmae.config.starts import Start
from cdmae.models import architectures, checkpoint, sequences
from cdmae.retrieval import reranking, vectors
from cdmae.tokens import tokenise

TOKENIZERS = {
    "bert": "word_piece", "electra": "word_piece", "distilbert": "word_piece", "mpnet": "mpnet",
    "roberta": "byte_level", "xlm-roberta": "unigram", "modernbert": "modern",
    "nomic_bert": "word_piece", "gte": "unigram",
}  # fmt: skip
CASES = [*TOKENIZERS.items(), ("bert", "unigram")]  # the last is multilingual MiniLM's
SPOKEN = [*TEXTS, "mail (mail)", "e-mail, unmasked", " ".join(TEXTS)]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def published(request, tmp_path_factory):
    """A checkpoint without a language-model head, as sentence-transformers' are, and its
    architecture.
    """
    family, kind = request.param
    folder, tokenizer = tmp_path_factory.mktemp("published"), KINDS[kind]()
    ids = {"pad_token_id": tokenizer.pad_token_id} if family in architectures.BEHIND_PADDING else {}
    model(family, vocab_size=len(tokenizer), tie_word_embeddings=False, **ids).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    return folder, family


@pytest.fixture(scope="module")
def encoder(published, tmp_path_factory):
    """What a pipeline without pre-training makes of it."""
    pretrained.check(str(published[0]), ("starts", "x", "checkpoint"))
    return started(published[0], tmp_path_factory.mktemp("start"))


def test_a_head_that_it_lacks_is_new_and_tied(published, encoder, capfd):
    folder, family = published
    start = Start(checkpoint=str(folder))
    one, other = (checkpoint.start_encoder(start, encoder, seed) for seed in (1, 2))
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2 and all("has no LM head; new, random weights:" in line for line in said)
    head, matrix = architectures.head(one), one.get_input_embeddings().weight
    assert head.output.weight is matrix and torch.equal(matrix, other.get_input_embeddings().weight)
    assert not torch.equal(head.dense.weight, architectures.head(other).dense.weight)
    again = checkpoint.start_encoder(Start(checkpoint=str(encoder)), encoder, 3)
    assert capfd.readouterr().err == ""
    assert again.config.model_type == family


def test_a_retriever_gives_elsewhere_the_vectors_that_it_gives_here(published, encoder, tmp_path):
    """By sentence-transformers, and by transformers of the checkpoint itself."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel

    pooling = "mean" if published[1] in ("electra", "mpnet", "xlm-roberta", "gte") else "cls"
    folder = untrained(tmp_path / "model", encoder, stage("retriever", pooling=pooling))
    ours = vectors.Encoder({"model": folder}).queries(SPOKEN)
    theirs = SentenceTransformer(str(folder), device="cpu")
    theirs[0].query_length = 16
    np.testing.assert_allclose(theirs.encode_query(SPOKEN), ours, atol=1e-5, rtol=1e-5)
    how = {"padding": True, "truncation": True, "max_length": 16, "return_tensors": "pt"}
    read = tokenise.load_tokenizer(published[0])(SPOKEN, **how)
    with torch.no_grad():
        states = AutoModel.from_pretrained(published[0]).eval()(**read).last_hidden_state
    seen = read["attention_mask"][..., None].float()
    if pooling == "cls":
        seen[:, 1:] = 0
    pooled = (states * seen).sum(1) / seen.sum(1)
    np.testing.assert_allclose(pooled.numpy(), ours, atol=1e-5, rtol=1e-5)


def test_a_reranker_gives_elsewhere_the_scores_that_it_gives_here(encoder, tmp_path):
    from sentence_transformers import CrossEncoder

    folder = untrained(tmp_path / "model", encoder, stage("reranker", max_length=40))
    source = sequences.tokenised(SPOKEN, tokenise.Tokeniser(folder))
    rows = np.arange(len(SPOKEN))
    judge = checkpoint.load(folder, "reranker")
    ours = reranking.score(judge, source, rows, source, rows[::-1])
    theirs = CrossEncoder(str(folder), device="cpu").predict(
        list(zip(SPOKEN, SPOKEN[::-1], strict=True))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-5)
