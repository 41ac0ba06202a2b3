"""Third-party models of every kind, made here: as systems, as negatives and as teachers."""

import numpy as np
import pytest
import torch
from tiny_training import stage, train

from cdmae.finetuning import retriever
from cdmae.retrieval import external
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import read_vectors
from cdmae.runs import write_run

DEPTH = 40


def static(tiny, folder):
    """A vector per word-piece of the vocabulary, averaged over a text."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tiny.encoder / "tokenizer.json"))
    weights = np.random.default_rng(1).standard_normal((tokenizer.get_vocab_size(), 12))
    module = StaticEmbedding(tokenizer, embedding_weights=weights.astype(np.float32))
    made = SentenceTransformer(modules=[module], device="cpu", similarity_fn_name="cosine")
    made.save(str(folder))

    def scores(queries, passages):
        encoded = made.encode(queries, normalize_embeddings=True)
        return encoded @ made.encode(passages, normalize_embeddings=True).T

    return scores


def sparse(tiny, folder):
    """A SPLADE with random weights."""
    from sentence_transformers import SparseEncoder

    made = SparseEncoder(str(tiny.encoder), device="cpu")
    made.save(str(folder))

    def scores(queries, passages):
        return made.similarity(made.encode_query(queries), made.encode_document(passages)).numpy()

    return scores


def multi(tiny, folder):
    """A ColBERT with a random projection, of vectors that are rounded as they are stored here."""
    from sentence_transformers import MultiVectorEncoder

    with torch.random.fork_rng():
        torch.manual_seed(2)
        made = MultiVectorEncoder(str(tiny.encoder), device="cpu")
    made.save(str(folder))

    def scores(queries, passages):
        asked = made.encode_query(queries, convert_to_numpy=True)
        listed = made.encode_document(passages, convert_to_numpy=True)
        rounded = [each.astype(np.float16).astype(np.float32) for each in listed]
        return np.array([[(q @ p.T).max(1).sum() for p in rounded] for q in asked])

    return scores


@pytest.mark.parametrize("made", [static, sparse, multi])
def test_a_model_of_each_kind_ranks_and_gives_negatives_and_scores(tiny, tmp_path, made):
    """The ranking is that of sentence-transformers' own scores; a student learns from its run."""
    expected = made(tiny, tmp_path / "model")(tiny.queries, tiny.passages)
    model = str(tmp_path / "model")
    external.encode_passages(model, tiny.collection, tmp_path / "vectors", 0)
    queries = external.encode_queries(model, tiny.queries, 0)
    run = search(queries, read_vectors(tmp_path / "vectors"), DEPTH)
    for query in range(len(tiny.queries)):
        rows, scores = run.ranked(query)
        np.testing.assert_allclose(scores, expected[query][rows], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            scores, -np.sort(-expected[query])[: len(rows)], rtol=1e-5, atol=1e-5
        )
        assert len(rows) == min(DEPTH, (expected[query] > 0).sum() if made is sparse else DEPTH)
    write_run(tmp_path / "run.parquet", run)
    recipe = stage(
        "retriever", alpha=1.0, teacher_temperature=0.5, random_negatives=0, queries=2, epochs=1.0
    )
    own = {"negatives": tmp_path / "run.parquet", "ranking": tmp_path / "run.parquet"}
    folder = train(retriever, tiny, tmp_path, recipe, **own)
    curve = (folder / "steps.tsv").read_text().splitlines()
    assert "kl" in curve[0].split("\t") and len(curve) > 1
