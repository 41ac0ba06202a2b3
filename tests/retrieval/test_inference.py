"""Vectors and scores do not depend on order, shards, processes or kills."""

import shutil
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file, save_file
from tiny_training import PASSAGES, QUERIES, stage, together, untrained

from cdmae.errors import InputError
from cdmae.finetuning import groups
from cdmae.finetuning.groups import Drawing
from cdmae.finetuning.teacher import Teacher
from cdmae.models import checkpoint, sequences
from cdmae.retrieval import reranking, search, vectors
from cdmae.retrieval.vectors import read_vectors
from cdmae.runs import Run, Target, read_run, write_run
from cdmae.tokens.corpus import read_tokens
from cdmae.tokens.tokenise import Tokeniser

OWN = {"encoded_by": "vectors"}


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


def test_several_processes_share_the_encoding_and_write_the_vectors_of_one(
    retriever, tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(vectors, "SHARD", 25)
    how = {"encoder": OWN, "model": retriever, "source": tiny.tokens}
    vectors.write_vectors(**how, output=tmp_path / "one")
    encode, encoded = vectors.encode, []
    monkeypatch.setattr(
        vectors, "encode", lambda *given: encoded.append(threading.get_ident()) or encode(*given)
    )
    together(2, lambda group: vectors.write_vectors(**how, output=tmp_path / "v", group=group))
    assert sorted(Counter(encoded).values()) == [2, 3]
    assert len(list((tmp_path / "v").iterdir())) == 5
    for path in (tmp_path / "v").iterdir():
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()


def searched(tiny, model, folder, runs=(), **more):
    """Write the run of a retriever, with its vectors in the same folder; return its path."""
    files = {"folders": [tiny.collection], "tokens": [tiny.tokens], "lengths": {}}
    how = {"encoder": OWN, "model": model, "mined": [], "depth": 10} | more
    folder.mkdir(exist_ok=True)
    run = folder / "run.parquet"
    target = Target(tiny.collection.name, "train", tiny.collection, runs, run)
    search.write_runs(**how, **files, vectors=folder / "vectors", targets=[target])
    return run


def test_vectors_that_are_linked_or_not_kept_leave_the_same_run(retriever, tiny, tmp_path):
    run = searched(tiny, retriever, tmp_path / "made")
    for name, more in (
        ("linked", {"mined": [tmp_path / "made/vectors"]}),
        ("gone", {"keep": False}),
    ):
        other = searched(tiny, retriever, tmp_path / name, **more)
        assert other.read_bytes() == run.read_bytes()
    assert len(list((tmp_path / "linked").rglob("*.npy"))) == 1
    assert not list((tmp_path / "gone").rglob("*.npy"))


def test_of_candidates_the_best_are_searched(tiny, tmp_path):
    model = untrained(tmp_path / "model", tiny.encoder, stage("multi"))
    candidates = read_run(tiny.negatives)
    more = {"runs": (tiny.negatives,), "candidates_depth": 3}
    found = read_run(searched(tiny, model, tmp_path / "of", **more))
    for query in range(len(found)):
        assert set(found.ranked(query)[0]) == set(candidates.ranked(query)[0][:3])


def test_collections_of_the_same_passages_share_vectors_of_one_length(retriever, tiny, tmp_path):
    names = [tiny.collection.name, "same", "shorter"]
    folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir()
        (folder / "passages.parquet").symlink_to(tiny.collection / "passages.parquet")
    how = {"encoder": OWN, "model": retriever, "lengths": {"shorter": 9}, "vectors": tmp_path / "v"}
    on = {"mined": [], "targets": []}
    search.write_runs(**how, **on, folders=folders, tokens=[tiny.tokens] * 3, depth=1)
    own, same, shorter = (tmp_path / "v" / name / "00000.npy" for name in names)
    assert own.samefile(same) and own.read_bytes() != shorter.read_bytes()


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
    settings = {"split": "train", "depth": 5, "group": 6, "random_negatives": 3, "seed": 9}
    how = files | {"model": reranker, "tokens": tiny.tokens}
    for epochs in (1, 2.5):  # the pieces of the first are not reused
        how["settings"] = settings | {"epochs": epochs}
        reranking.teacher(**how, output=tmp_path / "t.parquet")
    run = read_run(tmp_path / "t.parquet")
    taught = Teacher.read(tmp_path / "t.parquet")
    examples, _ = groups.read_examples(**files, drawing=Drawing(**settings))
    assert len(run) == QUERIES
    queries = sequences.tokenised(tiny.queries, Tokeniser(reranker))
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
    folders = [tiny.collection, tmp_path / "same"]
    folders[1].symlink_to(tiny.collection)
    how = {"model": reranker, "folders": folders, "tokens": [tiny.tokens] * 2, "depth": 8}
    how |= {"lengths": {"same": 16}}
    pairs = [*zip(folders, outputs, strict=True)]
    given = [Target(of.name, "train", of, (tiny.negatives,), output) for of, output in pairs]
    before, passages = read_run(tiny.negatives), read_tokens(tiny.tokens)
    write_run(tmp_path / "turned.parquet", replace(before, passages=before.passages[::-1].copy()))
    turned = [replace(target, runs=(tmp_path / "turned.parquet",)) for target in given]
    other = shutil.copytree(tiny.collection, tmp_path / "other")
    asked = pd.read_parquet(other / "queries.parquet")
    asked.assign(text=asked["text"].values[::-1]).to_parquet(other / "queries.parquet")
    of_others = [replace(target, folder=other) for target in given]
    # the pieces of neither run are reused
    reranking.rerank(targets=of_others, **how | {"folders": [other] * 2})
    reranking.rerank(targets=given, **how)
    known = [output.read_bytes() for output in outputs]
    shutil.rmtree(vectors.pieces_of(tmp_path))
    reranking.rerank(targets=turned, **how)
    reranking.rerank(targets=given, **how)
    assert [output.read_bytes() for output in outputs] == known
    queries = sequences.tokenised(tiny.queries, Tokeniser(reranker))
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
    queries = sequences.tokenised(tiny.queries[:3], Tokeniser(reranker))
    monkeypatch.setattr(reranking, "score", lambda *given: np.zeros(len(given[-1]), np.float32))
    lists = [np.array([9, 4, 7, 2]), np.array([]), np.array([8])]
    run = Run.of(lists, [np.arange(4.0), np.array([]), np.ones(1)])
    found = reranking.reorder(judge, queries, passages, run, 3)
    assert [found.ranked(query)[0].tolist() for query in range(3)] == [[4, 7, 9, 2], [], [8]]
    assert found.ranked(0)[1].tolist() == [0, 0, 0, -1]
