"""What docs/models.md says of trained models elsewhere: our very numbers, where its packages are
installed.
"""

import re

import numpy as np
import pytest
from test_models import reranker, retriever, save, vectors  # noqa: F401

from cdmae.collections.store import read_qrels
from cdmae.evaluation.measures import measure
from cdmae.models import checkpoint, sequences
from cdmae.retrieval import reranking
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import search
from cdmae.tokens.corpus import read_tokens
from tests.workflow.conftest import ROOT

RETRIEVER, RERANKER, MTEB = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs/models.md").read_text(), flags=re.MULTILINE | re.DOTALL
)


def run(text, **places):
    """Run a program of the documentation with other paths; its names."""
    for old, new in places.values():
        assert old in text
        text = text.replace(old, str(new))
    names = {"__name__": "documentation"}
    exec(text, names)
    return names


def test_onnx_gives_the_vectors_of_a_retriever(tiny, retriever, tmp_path, monkeypatch):  # noqa: F811
    pytest.importorskip("onnxscript")
    monkeypatch.chdir(tmp_path)
    model = run(RETRIEVER, model=("results/models/cdmae-stage3", retriever))["model"]
    assert (tmp_path / "onnx/stage3/model.onnx").exists()
    monkeypatch.setattr(
        type(model.transformers_model), "forward", None
    )  # torch computes nothing any more
    asked = [*tiny.queries, " ".join(tiny.queries)]
    model[0].query_length = 16
    np.testing.assert_allclose(
        model.encode_document(tiny.passages), vectors(retriever, tiny), atol=1e-4
    )
    np.testing.assert_allclose(
        model.encode_query(asked), inference.encode_queries(retriever, asked), atol=1e-4
    )


def test_onnx_gives_the_scores_of_a_reranker(tiny, reranker, tmp_path, monkeypatch):  # noqa: F811
    pytest.importorskip("onnxscript")
    monkeypatch.chdir(tmp_path)
    model = run(RERANKER, model=("results/models/cdmae-reranker", reranker))["model"]
    pairs = np.array([[0, 0], [3, 99], [23, 4], [5, 5]])
    texts = [(tiny.queries[query], tiny.passages[passage]) for query, passage in pairs]
    queries = sequences.queries(tiny.queries, reranker, 1)
    judge, passages = checkpoint.load(reranker, "reranker"), read_tokens(tiny.tokens)
    ours = reranking.score(judge, queries, pairs[:, 0], passages, list(pairs[:, 1:]))
    np.testing.assert_allclose(model.predict(texts), ours, atol=1e-4)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_mteb_measures_what_we_measure(tiny, tmp_path, similarity):
    pytest.importorskip("mteb")
    lengths = {"query_length": 16, "passage_length": 32}
    model = checkpoint.start_model(
        tiny.encoder, "retriever", **lengths, precision="fp32", similarity=similarity
    )
    folder = save(model, tmp_path / "retriever", tiny.encoder)
    queries = inference.encode_queries(folder, tiny.queries)
    ranked = search(queries, [vectors(folder, tiny)], 100)
    names = [f"q{row}" for row in range(len(queries))]
    ours = measure(ranked, read_qrels(tiny.collection, "train"), names, ["nDCG@10"])["value"].mean()
    scores = run(
        MTEB,
        model=("results/models/cdmae-stage3", folder),
        collection=("results/collections/pydocs", tiny.collection),
        length=("query_length = 32", "query_length = 16"),
        split=('"test"', '"train"'),
    )["scores"]
    assert scores["ndcg_at_10"] == pytest.approx(ours, abs=1e-4)
    assert 0.1 < ours < 0.9
