"""What teachers decide about negatives, teachers of whole batches, and labels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_training import (
    PASSAGES,
    QUERIES,
    encoder,
    learn,
    stage,
    task_in_float64,
    task_of,
    train,
    untrained,
)

from cdmae.collections.store import Collection, read_passages, read_queries, write_collection
from cdmae.errors import InputError
from cdmae.finetuning import losses, scoring
from cdmae.finetuning.labels import Labels
from cdmae.finetuning.task import Data, Inputs
from cdmae.finetuning.teacher import Teacher, balanced
from cdmae.models import checkpoint
from cdmae.retrieval import reranking, vectors
from cdmae.retrieval.search import search
from cdmae.runs import Run, read_run, write_run


def full_run(scores):
    """A run with a score for every passage of every query."""
    return Run.of([np.arange(PASSAGES)] * QUERIES, list(scores))


def of_positives(positive: float, other: float, spread: float = 0.0) -> np.ndarray:
    """Scores that tell the positive, passage q of query q, from all others."""
    generator = np.random.default_rng(1)
    scores = other + spread * generator.normal(size=(QUERIES, PASSAGES))
    scores[np.arange(QUERIES), np.arange(QUERIES)] = positive
    return scores.astype(np.float32)


def test_a_denoised_loss_omits_what_the_teacher_prefers(tiny, tmp_path, teacher):
    """Against a sum over the allowed passages, query by query; distillation none adds nothing."""
    how = {"denoise": 0.6, "teacher_temperature": 2.0, "distillation": "none"}
    recipe = stage("retriever", chunk=1000, **how)
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    task = task_in_float64(tiny, recipe, folder, teacher=teacher)
    rows = np.arange(6)
    epoch = 5  # in which positives are the best, and no worst ones, and temperatures differ
    batch = task.draw(rows, epoch)
    plain = replace(task, stage=replace(recipe, denoise=0.0)).draw(rows, epoch)
    own = np.arange(6)
    removed = batch.excluded.reshape(6, 6, 4)[own, own]
    margins = (batch.teacher - batch.teacher[:, :1]) / 2.0
    assert (removed == (1 / (1 + np.exp(-margins)) > 0.6)).all()
    assert removed.any()
    others = batch.excluded.reshape(6, 6, 4).copy()
    others[own, own] = False
    assert (others == plain.excluded.reshape(6, 6, 4)).all()

    numbers, _ = learn(task, batch)
    with torch.no_grad():
        every = scoring.all_scores(task.model, batch, 10_000)
    naive = 0.0
    for query in range(6):
        allowed = ~batch.excluded[query]
        naive -= (every[query, 4 * query] - every[query][allowed].logsumexp(0)).item() / 6
    assert "kl" not in numbers
    assert numbers["loss"].item() == pytest.approx(naive, rel=1e-5)  # all_scores is float32
    best = every.view(6, 6, 4)[own, own].argmax(1)
    assert numbers["accuracy"].item() == pytest.approx((best == 0).double().mean().item())


@pytest.mark.parametrize(
    ("positive", "alpha", "refused"), [(1.0, 0.2, True), (1.0, 1.0, False), (9.0, 0.2, False)]
)
def test_a_teacher_that_cannot_tell_is_refused_where_little_else_is_learnt(
    tiny, tmp_path, positive, alpha, refused
):
    """Scores of 0 and 1 over a group of 3 are nearly uniform (entropy .89 of log 3), of 0 and 9
    they are not.
    """
    write_run(tmp_path / "t.parquet", full_run(of_positives(positive, 0.0)))
    for kind in ("retriever", "reranker"):
        more = {"forward_factor": 1} if kind == "reranker" else {}
        recipe = stage(kind, group=3, alpha=alpha, **more)
        model = checkpoint.start_model(tiny.encoder, kind, **recipe.model())
        if not refused:
            task_of(tiny, recipe, model, teacher=tmp_path / "t.parquet")
            continue
        with pytest.raises(InputError, match="alpha of tiny is 0.2, .* 89% of the entropy"):
            task_of(tiny, recipe, model, teacher=tmp_path / "t.parquet")


# --- balanced margins -----------------------------------------------------------------------------


def test_balanced_probabilities_by_hand():
    """Three bins of width 1 from 0 to 3: two margins, none, and one, which is the upper edge."""
    found = balanced(np.array([0.0, 0.9, 3.0]), 3)
    assert found.tolist() == [0.25, 0.25, 0.5]
    assert balanced(np.array([2.0, 2.0]), 3).tolist() == [0.5, 0.5]
    assert balanced(np.array([-1.0, 5.0, 1.0]), 1) == pytest.approx([1 / 3] * 3)


def test_balanced_groups_draw_every_bin_equally_often(tiny):
    """Of ten negatives, the teacher scores one far below the others: half of the draws are of it."""
    scores = of_positives(10.0, 5.0, spread=0.01)
    run = read_run(tiny.negatives)
    lowest = [next(p for p in run.ranked(q)[0][:10] if p != q) for q in range(QUERIES)]
    scores[np.arange(QUERIES), lowest] = -5.0
    recipe = stage("retriever", depth=10, group=2, random_negatives=0, margin_bins=2)
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    chances = Teacher(full_run(scores), "t").balance(recipe.margin_bins)
    examples = replace(task_of(tiny, recipe, model).data.examples, chances=chances)
    rows = np.arange(QUERIES)
    drawn = np.concatenate([examples.draw(rows, epoch)[:, 1] for epoch in range(50)])
    share = (drawn == np.tile(lowest, 50)).mean()
    assert 0.45 < share < 0.55  # 1,200 draws: a standard deviation of .014
    # the teacher must have scored the whole pool, drawn or not
    assert all(np.isin(examples.pool(row), examples.drawn(row, 1)).all() for row in rows)


# --- topics ---------------------------------------------------------------------------------------


def test_topics_follow_the_seed(tiny):
    recipe = stage("retriever", topics=5)
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    read = Inputs(**tiny.inputs())
    one, other, again = (
        Data.read(read, recipe, model, seed=seed).examples.topics.tolist() for seed in (1, 2, 1)
    )
    assert one == again != other


# --- a second teacher, of whole batches -----------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "teaching", "more"),
    [
        ("retriever", "retriever", {}),
        ("sparse", "multi", {}),
        ("multi", "sparse", {"query_weights": "idf"}),
        ("unified", "unified", {"dense_temperature": 0.5}),
    ],
)
def test_a_second_teacher_adds_the_error_of_its_margins(tiny, tmp_path, kind, teaching, more):
    """Every head of a student; the teacher's scores are those of its own vectors."""
    taught_by = train(tiny, tmp_path / "t", stage(teaching, epochs=0.25, **more))
    recipe = stage(kind)
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    found = []
    for second in (None, taught_by):
        model = checkpoint.start_model(folder, "retriever", **recipe.model(), seed=1)
        made = task_of(tiny, recipe, model, in_batch_teacher=second)
        batch = made.draw(np.arange(6), 0)
        found.append(made.learn(batch, 1))
        assert ("in_batch" in found[-1]) == (second is not None)
    total = found[0]["loss"] + 0.75 * found[1]["in_batch"]
    assert found[1]["loss"].item() == pytest.approx(total.item(), rel=1e-5)
    encoder_of = vectors.Encoder({"model": taught_by})
    asked = encoder_of.queries([tiny.queries[q] for q in made.data.examples.queries[:6]])
    run = search(asked, encoder_of.passages(tiny.tokens), PASSAGES)
    drawn = made.data.examples.draw(np.arange(6), 0).ravel()
    for query in range(6):
        passages, scores = run.ranked(query)
        expected = pd.Series(scores, index=passages).reindex(drawn, fill_value=0.0)
        np.testing.assert_allclose(batch.in_batch[query], expected, rtol=1e-3, atol=2e-2)
    if kind == "retriever":
        every = scoring.all_scores(model, batch, 10_000).double()
        expected = losses.in_batch_margin_mse(every, batch.in_batch.double())
        assert found[1]["in_batch"].item() == pytest.approx(expected.item(), rel=1e-5)
        narrow = replace(made, stage=replace(recipe, precision="bf16")).draw(np.arange(6), 0)
        assert narrow.in_batch.dtype == torch.float32
        assert not torch.equal(narrow.in_batch, batch.in_batch)
        torch.testing.assert_close(narrow.in_batch, batch.in_batch, rtol=0.05, atol=0.5)


# --- labels ---------------------------------------------------------------------------------------


def test_labels_by_hand(tmp_path):
    """Of three mined passages, the first has e / (e + 1 + 1) = 0.576; a temperature sharpens it.

    Passage 9 is not among the best three, and passage 3 has no score.
    """
    mined = Run.of([[1, 2, 3, 9], [4, 5, 6, 9], [7]], [[4.0, 3.0, 2.0, 1.0]] * 2 + [[1.0]])
    scores = Run.of([[9, 1, 2], [4, 5, 6], []], [[8.0, 1.0, 0.0], [1.0, 0.0, 0.0], []])
    write_run(tmp_path / "t.parquet", scores)
    for share, temperature, expected in (
        (0.5, 1.0, [(0, 1), (1, 4)]),
        (0.6, 1.0, [(0, 1)]),  # two passages: e / (e + 1) = 0.73
        (0.8, 1.0, []),
        (0.8, 0.4, [(0, 1), (1, 4)]),  # 0.92 and 0.86
        (0.2, 1.0, [(0, 1), (0, 2), (1, 4), (1, 5), (1, 6)]),
    ):
        found = Labels(tmp_path / "t.parquet", share, temperature).qrels(mined, 3)
        assert list(zip(found["query"], found["passage"], strict=True)) == expected
        assert set(found["grade"]) <= {1}
        assert [dtype.kind for dtype in found.dtypes] == ["i"] * 3


def test_the_teacher_scores_the_best_mined_passages_of_every_query(tiny, tmp_path):
    """Queries without judgments: its labels are their only positives."""
    queries = {"asked": read_queries(tiny.collection, "train")}
    unjudged = Collection(read_passages(tiny.collection), queries, {}, {})
    write_collection(tmp_path / "unjudged", unjudged)
    reranker = untrained(tmp_path / "reranker", tiny.encoder, stage("reranker"))
    recipe = stage("retriever", split="asked", random_negatives=0, labels=0.9)
    how = {
        "model": reranker, "collection": tmp_path / "unjudged", "tokens": tiny.tokens,
        "negatives": tiny.negatives, "settings": recipe.drawn() | {"seed": 9},
    }  # fmt: skip
    reranking.teacher(**how, output=tmp_path / "t.parquet")
    run = read_run(tmp_path / "t.parquet")
    mined = read_run(tiny.negatives)
    for query in range(QUERIES):
        best = mined.ranked(query)[0][:15]
        assert sorted(run.ranked(query)[0].tolist()) == sorted(best.tolist())
