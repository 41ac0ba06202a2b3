"""What docs/models.md says of trained models elsewhere: our very numbers, where its packages are
installed.
"""

import re

import pytest
from test_models import save, vectors

from cdmae.collections.store import read_qrels
from cdmae.evaluation.measures import measure
from cdmae.models import checkpoint
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import search
from tests.workflow.conftest import ROOT

PROGRAMS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs/models.md").read_text(), flags=re.MULTILINE | re.DOTALL
)
(MTEB,) = (program for program in PROGRAMS if "import mteb" in program)


def run(text, **places):
    """Run a program of the documentation with other paths; its names."""
    for old, new in places.values():
        assert old in text
        text = text.replace(old, str(new))
    names = {"__name__": "documentation"}
    exec(text, names)
    return names


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
