"""The folders of trained retrievers: sentence-transformers, or the card's program, reads them."""

import numpy as np
import pytest
from scipy.sparse import issparse
from tiny_training import stage, train

from cdmae.finetuning import retriever
from cdmae.models import checkpoint
from cdmae.retrieval import vectors
from cdmae.retrieval.kinds.dual import DualVectors
from cdmae.retrieval.search import search

IDF = {"query_weights": "idf", "passage_flops": 0.01, "flops_warmup": 4}
FOLDERS = [
    ("retriever", {"pooling": "mean", "similarity": "cosine"}),
    ("sparse", {"flops_warmup": 1.0}),
    ("sparse", IDF),
    ("unified", {"temperature": 2.0, "dense_temperature": 4.0, "flops_warmup": 1.0}),
    ("multi", {}),
    ("multi", {"expansion": "attended", "skip_punctuation": False}),
    ("multi", {"expansion": "none", "passage_prompt": "[d] "}),
]


def theirs(folder, kind, encode, texts):
    """What sentence-transformers computes: an array per text, or a matrix."""
    import sentence_transformers

    name = {"retriever": "SentenceTransformer", "multi": "MultiVectorEncoder"}.get(
        kind, "SparseEncoder"
    )
    model = getattr(sentence_transformers, name)(str(folder), device="cpu")
    if name == "SparseEncoder":
        return getattr(model, encode)(texts, convert_to_sparse_tensor=False).numpy()
    return getattr(model, encode)(texts, convert_to_numpy=True)


@pytest.mark.parametrize(("kind", "more"), FOLDERS)
def test_sentence_transformers_computes_the_same_vectors(tiny, tmp_path, kind, more):
    folder = train(retriever, tiny, tmp_path, stage(kind, epochs=1, **more))
    encoder = vectors.Encoder({"model": folder})
    (shard,) = encoder.passages(tiny.tokens)
    for encode, texts, ours in (
        ("encode_query", tiny.queries, encoder.queries(tiny.queries)),
        ("encode_document", tiny.passages, shard[:]),
    ):
        found = theirs(folder, kind, encode, texts)
        if isinstance(ours, DualVectors):
            assert ours.weight == 0.5
            ours = ours.sparse
        if kind == "multi":
            for row, expected in enumerate(found):
                np.testing.assert_allclose(ours[row : row + 1].values, expected, atol=1e-5)
        else:
            ours = ours.toarray() if issparse(ours) else ours
            np.testing.assert_allclose(ours, found, atol=1e-4)


def test_a_head_of_a_unified_retriever_searches_alone(tiny, tmp_path):
    folder = train(retriever, tiny, tmp_path, stage("unified", flops_warmup=1.0, epochs=1))
    both = vectors.encode_queries(folder, tiny.queries)
    (shard,) = vectors.Encoder({"model": folder}).passages(tiny.tokens)
    for uses in ("dense", "sparse"):
        encoder = vectors.Encoder({"model": folder, "uses": uses})
        queries = encoder.queries(tiny.queries)
        assert abs(queries - both.head(uses)).max() == 0
        run = search(queries, encoder.passages(tiny.tokens), 9)
        scores = queries @ shard[:].head(uses).T
        scores = scores.toarray() if issparse(scores) else scores
        for query, row in enumerate(scores):
            np.testing.assert_allclose(
                run.ranked(query)[1], -np.sort(-row)[: len(run.ranked(query)[1])], rtol=1e-5
            )


def test_a_training_continues_from_a_table_with_or_without_it(tiny, tmp_path):
    first = train(retriever, tiny, tmp_path / "a", stage("sparse", epochs=1, **IDF))
    again = train(retriever, tiny, tmp_path / "b", stage("sparse", epochs=1, **IDF), after=first)
    other = train(retriever, tiny, tmp_path / "c", stage("sparse", epochs=1), after=first)
    assert checkpoint.load(again, "retriever").table is not None
    assert checkpoint.load(other, "retriever").table is None
