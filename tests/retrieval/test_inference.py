"""Vectors and scores do not depend on order, shards or kills; ties go by the passage's row."""

import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from scipy import sparse
from tiny_training import PASSAGES, QUERIES, encoder, stage

from cdmae.collections.store import read_passages
from cdmae.errors import InputError
from cdmae.finetuning import groups
from cdmae.finetuning.groups import Drawing
from cdmae.finetuning.task import Data, Inputs
from cdmae.finetuning.teacher import Teacher
from cdmae.models import checkpoint, sequences
from cdmae.retrieval import reranking, vectors
from cdmae.retrieval.dual import DualVectors
from cdmae.retrieval.multivectors import MultiVectors
from cdmae.retrieval.vectors import read_vectors
from cdmae.runs import Run, read_run
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import read_tokens, write_tokens


@pytest.fixture(scope="module")
def retriever(tiny, tmp_path_factory):
    return retriever_of(
        tiny, tmp_path_factory.mktemp("retriever"), query_length=16, passage_length=32
    )


def retriever_of(tiny, folder, **lengths):
    model = checkpoint.start_model(tiny.encoder, "retriever", **lengths, precision="fp32")
    checkpoint.save(folder, model, tiny.encoder, {})
    return folder


@pytest.fixture(scope="module")
def reranker(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reranker")
    model = checkpoint.start_model(
        tiny.encoder, "reranker", max_length=40, precision="fp32", seed=1
    )
    checkpoint.save(folder, model, tiny.encoder, {})
    return folder


def test_vectors_do_not_depend_on_shards_or_on_the_company(retriever, tiny, tmp_path, monkeypatch):
    vectors.encode_passages(retriever, tiny.tokens, tmp_path / "one", 1)
    monkeypatch.setattr(vectors, "SHARD", 50)
    monkeypatch.setattr(vectors, "BUDGET", {"cpu": 100})
    vectors.encode_passages(retriever, tiny.tokens, tmp_path / "three", 1)
    one, three = read_vectors(tmp_path / "one"), read_vectors(tmp_path / "three")
    assert [len(each) for each in one] == [PASSAGES]
    assert [len(each) for each in three] == [50, 50, 20]
    np.testing.assert_allclose(np.concatenate([shard[:] for shard in three]), one[0][:], atol=2e-6)
    assert [
        path.name for path in (tmp_path / "three").iterdir() if not path.name.endswith(".npy")
    ] == []
    for kept, shard in zip(
        three, vectors.shards(retriever, tiny.tokens, 1), strict=True
    ):  # that is not kept
        assert shard.shape == kept.shape
        np.testing.assert_array_equal(shard[:], kept[:])


def test_a_length_of_a_collection_stands_for_the_model_s_own(retriever, tiny, tmp_path):
    """As if the model had been trained with it."""
    other = retriever_of(tiny, tmp_path, query_length=9, passage_length=9)
    own = vectors.encode_queries(retriever, tiny.queries)
    cut = vectors.encode_queries(retriever, tiny.queries, length=9)
    assert (cut == vectors.encode_queries(other, tiny.queries)).all() and (cut != own).any()
    assert (
        vectors.shards(retriever, tiny.tokens, 1, 9)[0][:]
        == vectors.shards(other, tiny.tokens, 1)[0][:]
    ).all()
    with pytest.raises(
        InputError, match="evaluation.lengths is 65; expected up to 64, the positions of the model"
    ):
        vectors.encode_queries(retriever, tiny.queries, length=65)


def whole(shard):
    """All values of a shard of any head's vectors."""
    values = shard[:]
    if isinstance(values, DualVectors):
        return [values.dense, values.sparse.toarray()]
    if isinstance(values, MultiVectors):
        return [values.values, values.starts]
    return [values.toarray() if sparse.issparse(values) else values]


@pytest.mark.parametrize("head", ["retriever", "sparse", "multi", "unified"])
def test_a_killed_encoding_goes_on_after_its_last_shard(head, tiny, tmp_path, monkeypatch, capsys):
    retriever = tmp_path / "model"
    retriever.mkdir()
    recipe = stage(head)
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model(), seed=1)
    checkpoint.save(retriever, model, tiny.encoder, {})
    monkeypatch.setattr(vectors, "SHARD", 50)
    monkeypatch.setattr(vectors, "MULTI_SHARD", 50)
    encode, calls = vectors.encode, []

    def dying(*given):
        calls.append(len(given[1]))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return encode(*given)

    monkeypatch.setattr(vectors, "encode", dying)
    with pytest.raises(KeyboardInterrupt):
        vectors.encode_passages(retriever, tiny.tokens, tmp_path / "v", 1)
    assert not (tmp_path / "v").exists()
    vectors.encode_passages(retriever, tiny.tokens, tmp_path / "v", 1)
    shutil.rmtree(tmp_path / "v")  # as Snakemake does after a job that ends badly
    vectors.encode_passages(retriever, tiny.tokens, tmp_path / "v", 1)
    assert calls == [50, 50, 20, 20]
    assert "resuming with 2 finished pieces" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [".v.pieces", "model", "v"]
    monkeypatch.setattr(vectors, "encode", encode)
    vectors.encode_passages(retriever, tiny.tokens, tmp_path / "w", 1)
    for first, second in zip(
        read_vectors(tmp_path / "v"), read_vectors(tmp_path / "w"), strict=True
    ):
        for one, other in zip(whole(first), whole(second), strict=True):
            np.testing.assert_array_equal(one, other)


def test_pieces_made_from_something_else_are_not_used(tmp_path):
    vectors.piece(vectors.pieces(tmp_path / "o", ["a"]) / "00000.npy", lambda: np.ones(3))
    assert (vectors.pieces(tmp_path / "o", ["a"]) / "00000.npy").exists()
    assert not (vectors.pieces(tmp_path / "o", ["b"]) / "00000.npy").exists()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "bad has NaN or infinity in encoder.layer.0.output.LayerNorm.bias: "),
        (1e38, "NaN or infinity"),
    ],
)
def test_a_diverged_model_gives_words_not_vectors(retriever, tiny, tmp_path, value, said):
    shutil.copytree(retriever, tmp_path / "bad")
    weights = load_file(tmp_path / "bad/model.safetensors")
    weights["encoder.layer.0.output.LayerNorm.bias"].fill_(value)
    save_file(weights, tmp_path / "bad/model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=said):
        vectors.encode_queries(tmp_path / "bad", ["what"])


@pytest.mark.parametrize("more", [{}, {"margin": 0.2}])
def test_the_teacher_scores_all_that_its_student_draws(reranker, tiny, tmp_path, more, monkeypatch):
    files_ = {name: getattr(tiny, name) for name in ("collection", "negatives")}
    settings = {"split": "train", "depth": 5, "group": 12, "random_negatives": 3, "seed": 9, **more}
    how = {
        "model": reranker,
        "tokens": tiny.tokens,
        **files_,
        "settings": settings | {"epochs": 2.5},
    }
    reranking.teacher(**how, output=tmp_path / "t.parquet")
    run = read_run(tmp_path / "t.parquet")
    taught = Teacher.read(tmp_path / "t.parquet")
    examples, _ = groups.read_examples(**files_, drawing=Drawing(**settings))
    assert len(run) == QUERIES
    taught.check(examples, 3)
    for epoch in range(3):
        drawn = examples.draw(np.arange(len(examples)), epoch)
        found = taught.scores(examples.queries, drawn)
        queries = sequences.queries(tiny.queries, reranker, 1)
        judge, passages = checkpoint.load(reranker, "reranker"), read_tokens(tiny.tokens)
        expected = reranking.score(judge, queries, examples.queries, passages, list(drawn))
        np.testing.assert_allclose(found.ravel(), expected, atol=2e-6)
    for query in range(QUERIES):
        assert (np.diff(run.ranked(query)[1]) <= 0).all()
    monkeypatch.setattr(reranking, "PIECE", 40)
    reranking.teacher(**how, output=tmp_path / "pieces.parquet")
    pieces = read_run(tmp_path / "pieces.parquet")
    assert (pieces.starts == run.starts).all()
    np.testing.assert_allclose(pieces.scores, run.scores, atol=2e-6)
    shown = [path.name for path in tmp_path.iterdir() if path.is_file()]
    assert sorted(shown) == ["pieces.parquet", "t.parquet"]


def test_a_teacher_with_another_tokenizer_scores_all_that_its_student_draws(tiny, tmp_path):
    tokenise.train_tokenizer(["0 1 2 3"] * 9, 160).save_pretrained(
        tmp_path / "digits"
    )  # every word is [UNK] to it
    write_tokens(
        tmp_path / "t", tokenise.tokenise(read_passages(tiny.collection), tmp_path / "digits", 1)
    )
    start = encoder(tmp_path / "e", tmp_path / "digits")
    judge = checkpoint.start_model(start, "reranker", max_length=40, precision="fp32", seed=1)
    (tmp_path / "judge").mkdir()
    checkpoint.save(tmp_path / "judge", judge, start, {})
    recipe = stage("retriever", group=8)
    settings = {
        key: getattr(recipe, key)
        for key in ("split", "depth", "group", "random_negatives", "epochs")
    }
    reranking.teacher(
        collection=tiny.collection, negatives=tiny.negatives, settings=settings | {"seed": 9},
        model=tmp_path / "judge", tokens=tmp_path / "t", output=tmp_path / "s.parquet",
    )  # fmt: skip
    student = checkpoint.start_model(
        tiny.encoder, "retriever", query_length=16, passage_length=32, precision="fp32"
    )
    data = Data.read(Inputs(**tiny.inputs()), recipe, student, seed=9)
    taught = Teacher.read(tmp_path / "s.parquet")
    for epoch in range(2):
        taught.scores(
            data.examples.queries, data.examples.draw(np.arange(len(data.examples)), epoch)
        )


def test_reranking_orders_the_top_and_keeps_the_rest(reranker, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(
        reranking, "PIECE", 33
    )  # several pieces, none of them whole queries by chance
    how = {"model": reranker, "depth": 8, "threads": 1, "splits": ["train"], "lengths": [0]}
    lists = {"collections": [tiny.collection], "tokens": [tiny.tokens], "runs": [tiny.negatives]}
    reranking.rerank(**how, **lists, outputs=[tmp_path / "r.parquet"])
    before, after = read_run(tiny.negatives), read_run(tmp_path / "r.parquet")
    judge, passages = checkpoint.load(reranker, "reranker"), read_tokens(tiny.tokens)
    queries = sequences.queries(tiny.queries, reranker, 1)
    for query in range(QUERIES):
        old, (new, scores) = before.ranked(query)[0], after.ranked(query)
        expected = reranking.score(judge, queries, np.array([query]), passages, [old[:8]])
        order = np.argsort(-expected, kind="stable")
        assert new[:8].tolist() == old[:8][order].tolist()
        np.testing.assert_allclose(scores[:8], expected[order], atol=2e-6)
        assert new[8:].tolist() == old[8:].tolist()
        np.testing.assert_allclose(scores[8:], scores[7] - np.arange(1, 13), atol=1e-5)


def test_a_killed_reranking_goes_on_after_its_last_piece(
    reranker, tiny, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(reranking, "PIECE", 8 * QUERIES // 2)
    how = {
        "model": reranker,
        "depth": 8,
        "collections": [tiny.collection] * 2,
        "tokens": [tiny.tokens],
    }
    how |= {"runs": [tiny.negatives] * 2, "splits": ["train"] * 2, "lengths": [0, 12]}
    outputs = [[tmp_path / f"{run}{target}.parquet" for target in range(2)] for run in "ab"]
    score, asked = reranking.score, []

    def dying(*given):
        asked.append(given[2][0])
        if len(asked) == 4:
            raise KeyboardInterrupt
        return score(*given)

    monkeypatch.setattr(reranking, "score", dying)
    with pytest.raises(KeyboardInterrupt):
        reranking.rerank(**how, outputs=outputs[0])
    outputs[0][0].unlink()  # as Snakemake does
    reranking.rerank(**how, outputs=outputs[0])
    assert len(asked) == 5 and "resuming with 3 finished pieces" in capsys.readouterr().err
    monkeypatch.setattr(reranking, "score", score)
    reranking.rerank(**how, outputs=outputs[1])
    for first, second in zip(*outputs, strict=True):
        assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "a0.parquet",
        "a1.parquet",
        "b0.parquet",
        "b1.parquet",
    ]


def test_pieces_of_another_size_are_made_again(reranker, tiny, tmp_path, monkeypatch, capsys):
    how = {"model": reranker, "depth": 8, "collections": [tiny.collection], "tokens": [tiny.tokens]}
    how |= {"runs": [tiny.negatives], "splits": ["train"], "lengths": [0]}
    with monkeypatch.context() as killed:
        killed.setattr(reranking, "PIECE", 8 * QUERIES)
        killed.setattr(reranking, "write_run", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reranking.rerank(**how, outputs=[tmp_path / "a.parquet"])
    monkeypatch.setattr(reranking, "PIECE", 8 * QUERIES // 2)
    for name in "ab":
        reranking.rerank(**how, outputs=[tmp_path / f"{name}.parquet"])
    assert "going on" not in capsys.readouterr().err
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_pairs_are_cut_at_the_length_of_their_collection(reranker, tiny, tmp_path):
    how = {
        "model": reranker,
        "depth": 8,
        "collections": [tiny.collection] * 2,
        "tokens": [tiny.tokens],
    }
    outputs = [tmp_path / "own.parquet", tmp_path / "cut.parquet"]
    reranking.rerank(
        **how, splits=["train"] * 2, runs=[tiny.negatives] * 2, lengths=[0, 16], outputs=outputs
    )
    own, cut = map(read_run, outputs)
    judge = checkpoint.at(checkpoint.load(reranker, "reranker"), 16)
    queries = sequences.queries(tiny.queries, reranker, 1)
    top = read_run(tiny.negatives).ranked(0)[0][:8]
    expected = reranking.score(judge, queries, np.array([0]), read_tokens(tiny.tokens), [top])
    np.testing.assert_allclose(cut.ranked(0)[1][:8], np.sort(expected)[::-1], atol=2e-6)
    assert abs(own.scores - cut.scores).max() > 1e-3


def test_reranking_ties_go_by_row_and_short_lists_are_fine(reranker, tiny, monkeypatch):
    judge, passages = checkpoint.load(reranker, "reranker"), read_tokens(tiny.tokens)
    queries = sequences.queries(tiny.queries[:3], reranker, 1)
    monkeypatch.setattr(
        reranking, "score", lambda *given: np.zeros(sum(map(len, given[-1])), np.float32)
    )
    run = Run.of(
        [np.array([9, 4, 7, 2]), np.array([]), np.array([8])],
        [np.arange(4.0), np.array([]), np.ones(1)],
    )
    found = reranking.reorder(judge, queries, passages, run, 3)
    assert [found.ranked(query)[0].tolist() for query in range(3)] == [[4, 7, 9, 2], [], [8]]
    assert found.ranked(0)[1].tolist() == [0, 0, 0, -1]
