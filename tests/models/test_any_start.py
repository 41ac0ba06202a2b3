"""A checkpoint of every architecture with its kind of tokenizer: as a start, a retriever and a
reranker.
"""

import numpy as np
import pyarrow as pa
import pytest
import torch
from tiny_models import model
from tiny_pretraining import differences, run, started
from tiny_tokenizers import KINDS, TEXTS, write_tokens
from tiny_training import stage, untrained

from cdmae.config import pretrained
from cdmae.config.objectives import Mae
from cdmae.config.starts import Start
from cdmae.importance import ami, ngrams
from cdmae.models import architectures, checkpoint, sequences
from cdmae.retrieval import external, reranking, vectors
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


def test_it_is_pretrained_with_masks_by_importance(published, encoder, tmp_path):
    """On words of its own tokenizer; the result is an encoder of the same kind, with other weights."""
    texts = [*TEXTS, *SPOKEN[:4], ""]
    table = pa.table({"title": ["", "e-mail"] * 3 + [""], "text": texts})
    tokens = tokenise.Tokeniser(encoder).tokens(table)
    write_tokens(tmp_path / "tokens", tokens)
    ngrams.count_to(tmp_path / "ngrams", tokens, unit="word", window=3)
    formula = {"pmi": "min", "normaliser": "order", "edges": "literal"}
    ami.estimate(tmp_path / "importance", tmp_path / "ngrams", tokens, formula)
    how = {"max_length": 24, "batch": 4, "steps": 2, "learning_rate": 1e-3, "precision": "fp32"}
    folders = {name: tmp_path / name for name in ("tokens", "importance")}
    made = run(
        folders | {"tokenizer": encoder},
        tmp_path,
        Mae(start="s", collection="c", **how),
        start=Start(checkpoint=str(published[0])),
    )
    assert len(differences(encoder, made)) > 20


def test_minilm_has_its_published_vectors_as_a_start_and_as_a_foreign_model(minilm, tmp_path):
    """With its own pooling and similarity; two texts, of which the second is cut."""
    from sentence_transformers import SentenceTransformer

    texts = ["how do I join two lists?", "When was the first bridge over the river built? " * 8]
    start = started(minilm, tmp_path / "start")
    recipe = stage("retriever", query_length=32, pooling="mean", similarity="cosine")
    folder = untrained(tmp_path / "model", start, recipe)
    ours = vectors.Encoder({"model": folder}).queries(texts)
    theirs = SentenceTransformer(str(minilm), device="cpu")
    foreign = external.Encoder({"model": str(minilm)}).queries(texts)
    np.testing.assert_allclose(foreign, theirs.encode(texts), atol=1e-6)
    theirs.max_seq_length = 32
    np.testing.assert_allclose(ours, theirs.encode(texts), atol=1e-5)
