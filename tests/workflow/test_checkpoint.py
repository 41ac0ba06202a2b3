"""The template for a collection of one's own, with a published checkpoint in the layout of
bert-base-uncased.
"""

import json
import random

import numpy as np
import pytest
import yaml
from safetensors.torch import load_file

from cdmae.retrieval import vectors

pytestmark = pytest.mark.workflow

SMALL = {  # over config/examples/collection-paper.yaml
    "results": "results/mine",
    "encoders": {"cdmae": {"batch": 8, "epochs": 0.25, "max_length": 32}},
    "training": {
        "queries": 8,
        "group": 4,
        "epochs": 1,
        "warmup_steps": 1,
        "passage_length": 32,
        "max_length": 48,
    },
    "stages": {"reranker": {"forward_factor": 2}},
}


def write_collection(folder, checkpoint):
    """Passages of random words in BEIR's layout, and queries of some words of theirs."""
    rng = random.Random(1)
    pieces = json.loads((checkpoint / "tokenizer.json").read_text())["model"]["vocab"]
    words = sorted(each for each in pieces if each.isascii() and each.isalpha() and len(each) > 4)
    texts = [rng.sample(words[:2000], 30) for _ in range(60)]
    corpus = [
        {"_id": f"p{row}", "title": text[0], "text": " ".join(text[1:])}
        for row, text in enumerate(texts)
    ]
    queries = [
        {"_id": f"q{row}", "text": " ".join(rng.sample(text, 5))} for row, text in enumerate(texts)
    ]
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for split, rows in {"train": range(8), "test": range(8, 16)}.items():
        judged = "".join(f"q{row}\tp{row}\t1\n" for row in rows)
        (folder / f"qrels/{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return corpus


def test_a_published_checkpoint_is_pre_trained_and_becomes_a_retriever(
    tiny_bert, fresh, overlay, tmp_path
):
    from sentence_transformers import SentenceTransformer

    corpus = write_collection(tmp_path / "mine", tiny_bert)
    mine = {
        "collections": {"mine": {"path": str(tmp_path / "mine")}},
        "starts": {"bert": {"checkpoint": str(tiny_bert)}},
    }
    own = overlay(yaml.safe_dump(SMALL | mine))
    config = "config/examples/collection-paper.yaml"
    fresh.run("--configfile", config, own, "--", "results/mine/trained/stage1")
    results = fresh.folder / "results/mine"
    folders = (tiny_bert, results / "encoders/cdmae")
    before, after = (load_file(folder / "model.safetensors") for folder in folders)
    name = "bert.encoder.layer.1.output.LayerNorm."
    change = (after[f"{name}weight"] - before[f"{name}gamma"]).abs().max()
    assert 0 < change < 0.01, "it was pre-trained from there"

    texts = [" ".join(row["text"] for row in corpus), "bridge"]
    theirs = SentenceTransformer(str(results / "trained/stage1"), device="cpu")
    theirs[0].query_length = 32
    ours = vectors.encode_queries(results / "trained/stage1", texts)
    np.testing.assert_allclose(ours, theirs.encode_query(texts), atol=1e-5)
