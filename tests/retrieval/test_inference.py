"""Vectors and scores do not depend on order, shards, processes or kills."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from tiny_training import PASSAGES, QUERIES, stage, untrained

from cdmae.errors import InputError
from cdmae.finetuning import groups
from cdmae.finetuning.groups import Drawing
from cdmae.finetuning.teacher import Teacher
from cdmae.models import checkpoint, sequences
from cdmae.retrieval import reranking, search, vectors
from cdmae.retrieval.vectors import read_vectors
from cdmae.runs import Run, read_run
from cdmae.tokens.corpus import read_tokens

OWN = {"encoded_by": "vectors"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def retriever(tiny, tmp_path_factory):
    return untrained(tmp_path_factory.mktemp("r") / "retriever", tiny.encoder, stage("retriever"))


@pytest.fixture(scope="module")
def reranker(tiny, tmp_path_factory):
    recipe = stage("reranker", max_length=40)
    return untrained(tmp_path_factory.mktemp("r") / "reranker", tiny.encoder, recipe)


def test_vectors_do_not_depend_on_shards_or_on_the_company(retriever, tiny, tmp_path, monkeypatch):
    how = {"encoder": OWN, "model": retriever, "source": tiny.tokens}
    vectors.write_vectors(**how, output=tmp_path / "one")
    monkeypatch.setattr(vectors, "SHARD", 50)
    monkeypatch.setattr(vectors, "BUDGET", {"cpu": 100})
    vectors.write_vectors(**how, output=tmp_path / "three")
    one, three = read_vectors(tmp_path / "one"), read_vectors(tmp_path / "three")
    assert [len(each) for each in one] == [PASSAGES]
    assert [len(each) for each in three] == [50, 50, 20]
    np.testing.assert_allclose(np.concatenate([shard[:] for shard in three]), one[0][:], atol=2e-6)
    made = vectors.Encoder({"model": retriever}).passages(tiny.tokens)
    for kept, shard in zip(three, made, strict=True):  # that is not kept
        np.testing.assert_array_equal(shard[:], kept[:])


def test_a_length_of_a_collection_stands_for_the_model_s_own(retriever, tiny, tmp_path):
    """As if the model had been trained with it."""
    recipe = stage("retriever", query_length=9, passage_length=9)
    other = untrained(tmp_path / "other", tiny.encoder, recipe)
    own, cut = vectors.Encoder({"model": retriever}), vectors.Encoder({"model": retriever}, 9)
    short = vectors.Encoder({"model": other})
    queries = cut.queries(tiny.queries)
    assert (queries == short.queries(tiny.queries)).all()
    assert (queries != own.queries(tiny.queries)).any()
    assert (cut.passages(tiny.tokens)[0][:] == short.passages(tiny.tokens)[0][:]).all()
    with pytest.raises(InputError, match="is 65; expected up to 64, the positions of the model"):
        vectors.Encoder({"model": retriever}, 65)


def test_a_killed_encoding_goes_on_after_its_last_shard(
    retriever, tiny, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(vectors, "SHARD", 50)
    encode, calls = vectors.encode, []
    how = {"encoder": OWN, "model": retriever, "source": tiny.tokens}

    def dying(*given):
        calls.append(len(given[1]))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return encode(*given)

    monkeypatch.setattr(vectors, "encode", dying)
    with pytest.raises(KeyboardInterrupt):
        vectors.write_vectors(**how, output=tmp_path / "v")
    assert not (tmp_path / "v").exists()
    vectors.write_vectors(**how, output=tmp_path / "v")
    shutil.rmtree(tmp_path / "v")  # as Snakemake does after a job that ends badly
    vectors.write_vectors(**how, output=tmp_path / "v")
    assert calls == [50, 50, 20, 20]
    assert capsys.readouterr().err.count("resuming with 2 finished pieces") == 1
    vectors.write_vectors(**how, output=tmp_path / "v", code={"cdmae.models": "changed"})
    assert calls[4:] == [50, 50, 20], "other code encodes again"
    monkeypatch.setattr(vectors, "encode", encode)
    vectors.write_vectors(**how, output=tmp_path / "w")
    for path in (tmp_path / "w").iterdir():
        assert path.read_bytes() == (tmp_path / "v" / path.name).read_bytes()


JOB = """
import os, sys
from snakemake.iocontainers import Namedlist
from types import SimpleNamespace
from cdmae.job import run
from cdmae.retrieval import search, vectors
# its import takes longer than the search of a small collection
assert "transformers" not in sys.modules

def named(**values):
    return Namedlist(fromdict=values)

if __name__ == "__main__":
    vectors.SHARD = 25
    encode = vectors.encode
    vectors.encode = lambda *given: os.write(1, b"by " + os.environ["RANK"].encode() + b"\\n") and encode(*given)
    run(search.write_runs, SimpleNamespace(
        input=named(model={model!r}, tokens=[{tokens!r}], collections=[{tokens!r} + "/a"], mined=[], candidates=[]),
        output=named(runs="runs", vectors="v"), log=Namedlist(["log"]), threads=1,
        params=named(settings={{"targets": [], "depth": 1, "lengths": {{}}, "encoder": {encoder}}}),
        wildcards=named(), resources=named(gpu=2),
    ))
"""


def test_all_processes_of_a_job_encode_and_their_vectors_are_those_of_one(
    retriever, tiny, tmp_path, monkeypatch
):
    """Started as on GPUs, by torchrun's launcher."""
    monkeypatch.setattr(vectors, "SHARD", 25)
    how = {"encoder": OWN, "model": retriever, "source": tiny.tokens}
    vectors.write_vectors(**how, output=tmp_path / "one")
    values = {"model": str(retriever), "tokens": str(tiny.tokens), "encoder": OWN}
    (tmp_path / "script.py").write_text(JOB.format(**values))
    place = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    how = {"env": place, "cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, "script.py"], **how)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log").read_text()
    assert [log.count(f"by {rank}") for rank in range(2)] == [3, 2]
    made = tmp_path / "v" / tiny.tokens.name
    assert len(list(made.iterdir())) == 5
    for name in (f"0000{number}.npy" for number in range(5)):
        assert (made / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_of_candidates_the_best_are_searched(tiny, tmp_path):
    model = untrained(tmp_path / "model", tiny.encoder, stage("multi"))
    files = {"folders": [tiny.collection], "tokens": [tiny.tokens], "mined": [], "lengths": {}}
    on = {"collections": [tiny.collection], "splits": ["train"], "candidates": [tiny.negatives]}
    depths = {"depth": 10, "candidates_depth": 3}
    how = {"encoder": OWN, "model": model, "vectors": tmp_path / "v"}
    search.write_runs(**how, **files, **on, **depths, outputs=[tmp_path / "run.parquet"])
    found = read_run(tmp_path / "run.parquet")
    candidates = read_run(tiny.negatives)
    for query in range(len(found)):
        assert set(found.ranked(query)[0]) == set(candidates.ranked(query)[0][:3])


@pytest.mark.parametrize("value", [float("nan"), 1e38])
def test_a_diverged_model_gives_words_not_vectors(retriever, tiny, tmp_path, value):
    shutil.copytree(retriever, tmp_path / "bad")
    weights = load_file(tmp_path / "bad/model.safetensors")
    weights["encoder.layer.0.output.LayerNorm.bias"].fill_(value)
    save_file(weights, tmp_path / "bad/model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match="NaN or infinity"):
        vectors.Encoder({"model": tmp_path / "bad"}).queries(["what"])


# --- rerankers ------------------------------------------------------------------------------------


def test_the_teacher_scores_all_that_its_student_draws(reranker, tiny, tmp_path, monkeypatch):
    files = {"collection": tiny.collection, "negatives": tiny.negatives}
    settings = {"split": "train", "depth": 5, "group": 12, "random_negatives": 3, "seed": 9}
    how = files | {"model": reranker, "tokens": tiny.tokens}
    how["settings"] = settings | {"epochs": 2.5}
    reranking.teacher(**how, output=tmp_path / "t.parquet")
    run = read_run(tmp_path / "t.parquet")
    taught = Teacher.read(tmp_path / "t.parquet")
    examples, _ = groups.read_examples(**files, drawing=Drawing(**settings))
    assert len(run) == QUERIES
    queries = sequences.queries(tiny.queries, reranker, 1)
    judge, passages = checkpoint.load(reranker, "reranker"), read_tokens(tiny.tokens)
    for epoch in range(3):
        drawn = examples.draw(np.arange(len(examples)), epoch)
        found = taught.scores(examples.queries, drawn)
        asked = examples.queries.repeat(drawn.shape[1])
        expected = reranking.score(judge, queries, asked, passages, drawn.ravel())
        np.testing.assert_allclose(found.ravel(), expected, atol=2e-6)
    for query in range(QUERIES):
        assert (np.diff(run.ranked(query)[1]) <= 0).all()
    monkeypatch.setattr(reranking, "PIECE", 40)
    reranking.teacher(**how, output=tmp_path / "pieces.parquet")
    pieces = read_run(tmp_path / "pieces.parquet")
    assert (pieces.starts == run.starts).all()
    np.testing.assert_allclose(pieces.scores, run.scores, atol=2e-6)


def test_reranking_orders_the_top_at_its_length_and_keeps_the_rest(
    reranker, tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(reranking, "PIECE", 33)  # several pieces, none of them whole queries
    outputs = [tmp_path / "own.parquet", tmp_path / "cut.parquet"]
    twice = {"collections": tiny.collection, "runs": tiny.negatives, "splits": "train"}
    given = {key: [value] * 2 for key, value in twice.items()}
    how = {"model": reranker, "tokens": [tiny.tokens], "depth": 8, "lengths": [0, 16]}
    reranking.rerank(**given, **how, outputs=outputs)
    before, passages = read_run(tiny.negatives), read_tokens(tiny.tokens)
    queries = sequences.queries(tiny.queries, reranker, 1)
    for length, output in zip((0, 16), outputs, strict=True):
        after = read_run(output)
        judge = checkpoint.at(checkpoint.load(reranker, "reranker"), length)
        for query in range(QUERIES):
            old, (new, scores) = before.ranked(query)[0], after.ranked(query)
            expected = reranking.score(judge, queries, np.full(8, query), passages, old[:8])
            order = np.argsort(-expected, kind="stable")
            assert new[:8].tolist() == old[:8][order].tolist()
            np.testing.assert_allclose(scores[:8], expected[order], atol=2e-6)
            assert new[8:].tolist() == old[8:].tolist()
            np.testing.assert_allclose(scores[8:], scores[7] - np.arange(1, 13), atol=1e-5)


def test_reranking_ties_go_by_row_and_short_lists_are_fine(reranker, tiny, monkeypatch):
    judge, passages = checkpoint.load(reranker, "reranker"), read_tokens(tiny.tokens)
    queries = sequences.queries(tiny.queries[:3], reranker, 1)
    monkeypatch.setattr(reranking, "score", lambda *given: np.zeros(len(given[-1]), np.float32))
    lists = [np.array([9, 4, 7, 2]), np.array([]), np.array([8])]
    run = Run.of(lists, [np.arange(4.0), np.array([]), np.ones(1)])
    found = reranking.reorder(judge, queries, passages, run, 3)
    assert [found.ranked(query)[0].tolist() for query in range(3)] == [[4, 7, 9, 2], [], [8]]
    assert found.ranked(0)[1].tolist() == [0, 0, 0, -1]
