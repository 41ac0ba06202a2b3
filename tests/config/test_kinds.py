"""The classes of kinds of systems, and their answers."""

import importlib

import pytest

from cdmae.config.kinds import AnySystem
from cdmae.fields import kinds_of, parse

TRAINED = {"encoder": "mae", "stage": "s", "negatives": "bm25"}


@pytest.mark.parametrize("kind", kinds_of(AnySystem), ids=lambda kind: kind.__name__)
def test_a_kind_names_the_modules_that_answer_and_encode_a_query(kind):
    assert bool(kind.answered_by) == kind.answers
    if kind.answered_by:
        assert importlib.import_module(f"cdmae.retrieval.{kind.answered_by}").answer
    if kind.encoded_by:
        assert importlib.import_module(f"cdmae.retrieval.{kind.encoded_by}").Encoder


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "bm25"}, "BM25, k1 0.9, b 0.4"),
        ({"kind": "fusion", "of": ["a", "b"]}, "reciprocal ranks of a, b, summed"),
        (
            {"kind": "fusion", "of": ["a", "b"], "method": "convex", "tuned_on": ["x", "dev"]},
            "scores of a, b, summed, weights chosen on x dev",
        ),
        ({"kind": "run", "runs": {}}, "third-party runs, read from files"),
        ({"kind": "external", "model": "models/<e5>"}, "published retriever models/<e5>"),
        ({"kind": "head", "of": "a", "uses": "sparse"}, "sparse head of a"),
        ({"kind": "retriever", **TRAINED}, "retriever from mae"),
        ({"kind": "retriever", **TRAINED, "after": "round1"}, "retriever from round1"),
        (
            {"kind": "reranker", **TRAINED, "depth": 9, "reranks": "a"},
            "reranker from mae, reorders the best 9 of a",
        ),
    ],
)
def test_a_system_describes_itself(entry, words):
    assert parse(AnySystem, entry).in_words() == words
