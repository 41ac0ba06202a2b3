"""What teachers decide about negatives, and teachers of whole batches."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import PASSAGES, QUERIES, data_of, encoder, learn, stage, task_of, train

from cdmae.finetuning import groups, losses, retriever, scoring
from cdmae.finetuning.retriever import Teachers
from cdmae.finetuning.teacher import Teacher
from cdmae.models import checkpoint
from cdmae.retrieval import vectors
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.runs import Run, read_run


def full_run(scores):
    """A run with a score for every passage of every query."""
    return Run.of([np.arange(PASSAGES)] * QUERIES, list(scores))


def of_positives(positive: float, other: float, spread: float = 0.0) -> np.ndarray:
    """Scores that tell the positive, passage q of query q, from all others."""
    generator = np.random.default_rng(1)
    scores = other + spread * generator.normal(size=(QUERIES, PASSAGES))
    scores[np.arange(QUERIES), np.arange(QUERIES)] = positive
    return scores.astype(np.float32)


def test_preferred_passages_by_hand():
    """The probabilities that the passages are preferred: 0.5 of equal scores, then 0.12 and 0.88."""
    teacher = Teacher(Run.of([np.arange(4)], [np.array([1.0, 1.0, -1.0, 3.0])]), "t")
    group = np.array([[0, 1, 2, 3]])
    for denoise, temperature, expected in (
        (0.1, 1.0, [False, True, True, True]),
        (0.4, 1.0, [False, True, False, True]),
        (0.9, 1.0, [False, False, False, False]),
        (0.9, 0.5, [False, False, False, True]),
        (1.0, 1.0, [False, False, False, False]),
    ):
        recipe = stage("retriever", denoise=denoise, teacher_temperature=temperature)
        assert teacher.preferred(np.array([0]), group, recipe).tolist() == [expected]


@pytest.mark.parametrize("weight", [0.0, 0.1])
def test_a_denoised_loss_omits_what_the_teacher_prefers(tiny, tmp_path, teacher, weight):
    """Against a sum over the allowed passages, query by query; distillation none adds nothing."""
    recipe = stage("retriever", denoise=0.5, distillation="none", passage_weight=weight, chunk=1000)
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    model = checkpoint.start_model(folder, "retriever", **recipe.model())
    model.network.double()
    data = data_of(tiny, recipe, model)
    rows = np.arange(6)
    taught = Teachers(Teacher.read(teacher))
    batch = retriever.batch(data, rows, 0, model, recipe, taught)
    plain = retriever.batch(data, rows, 0, model, replace(recipe, denoise=0.0), taught)
    own = np.arange(6)
    removed = batch.excluded.reshape(6, 6, 4)[own, own]
    assert (removed[:, 1:] == (batch.teacher[:, 1:] > batch.teacher[:, :1])).all()
    assert removed.any() and not removed.all()
    others = batch.excluded.reshape(6, 6, 4).copy()
    others[own, own] = False
    assert (others == plain.excluded.reshape(6, 6, 4)).all()

    numbers, _ = learn(model, batch, recipe)
    with torch.no_grad():
        every = scoring.all_scores(model, batch, torch.device("cpu"), 10_000)
    naive = 0.0
    for query in range(6):
        allowed = ~batch.excluded[query]
        naive -= (every[query, 4 * query] - every[query][allowed].logsumexp(0)).item() / 6
    assert "kl" not in numbers
    assert numbers["contrastive"].item() == pytest.approx(numbers["loss"].item(), rel=1e-12)
    if not weight:
        assert numbers["loss"].item() == pytest.approx(naive, rel=1e-5)  # all_scores is float32


# --- balanced margins -----------------------------------------------------------------------------


def test_balanced_probabilities_by_hand():
    """Three bins of width 1 from 0 to 3: two margins, none, and one, which is the upper edge."""
    found = groups.balanced(np.array([0.0, 0.9, 3.0]), 3)
    assert found.tolist() == [0.25, 0.25, 0.5]
    assert groups.balanced(np.array([2.0, 2.0]), 3).tolist() == [0.5, 0.5]
    assert groups.balanced(np.array([-1.0, 5.0, 1.0]), 1) == pytest.approx([1 / 3] * 3)


def test_balanced_groups_draw_every_bin_equally_often(tiny, tmp_path):
    """Of ten negatives, the teacher scores one far below the others: half of the draws are of it."""
    scores = of_positives(10.0, 5.0, spread=0.01)
    run = read_run(tiny.negatives)
    lowest = [next(p for p in run.ranked(q)[0][:10] if p != q) for q in range(QUERIES)]
    scores[np.arange(QUERIES), lowest] = -5.0
    recipe = stage("retriever", depth=10, group=2, random_negatives=0, margin_bins=2)
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    data = data_of(tiny, recipe, model)
    taught = Teacher(full_run(scores), "t")
    balance = groups.Balance(taught.scores, recipe.margin_bins)
    examples = replace(data.examples, balance=balance)
    rows = np.arange(QUERIES)
    drawn = np.concatenate([examples.draw(rows, epoch)[:, 1] for epoch in range(50)])
    share = (drawn == np.tile(lowest, 50)).mean()
    assert 0.45 < share < 0.55  # 1,200 draws: a standard deviation of .014
    again = np.concatenate([examples.draw(rows, epoch)[:, 1] for epoch in range(50)])
    assert (drawn == again).all()
    # the teacher must have scored the whole pool, drawn or not
    assert all(np.isin(examples.pool(row), examples.drawn(row, 1)).all() for row in rows)
    assert recipe.drawn()["whole_pool"] and "whole_pool" not in stage("retriever").drawn()


# --- a second teacher, of whole batches -----------------------------------------------------------


def test_in_batch_margins_by_hand():
    """Two queries and four passages: the positives are in columns 0 and 2."""
    student = torch.tensor([[3.0, 1.0, 0.0, 2.0], [1.0, 0.0, 2.0, 0.0]])
    teacher = torch.tensor([[5.0, 1.0, 2.0, 2.0], [0.0, 0.0, 4.0, 1.0]])
    first = (2 - 4) ** 2 + (3 - 3) ** 2 + (1 - 3) ** 2
    second = (1 - 4) ** 2 + (2 - 4) ** 2 + (2 - 3) ** 2
    found = losses.in_batch_margin_mse(student, teacher)
    assert found.item() == pytest.approx((first + second) / 2 / 3)


@pytest.mark.parametrize(
    ("kind", "teaching"),
    [("retriever", "retriever"), ("sparse", "multi"), ("multi", "multi"), ("unified", "retriever")],
)
def test_a_second_teacher_adds_the_error_of_its_margins(tiny, tmp_path, kind, teaching):
    """Every head of a student with a dense and a multi-vector teacher, which only this loss reads."""
    taught_by = train(retriever, tiny, tmp_path / "t", stage(teaching, epochs=0.25))
    how = {} if kind in ("retriever", "multi") else {"flops_warmup": 4.0}
    recipe = stage(kind, in_batch_weight=0.5, **how)
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    device = torch.device("cpu")
    found = {}
    for second in (None, taught_by):
        model = checkpoint.start_model(folder, "retriever", **recipe.model(), seed=1)
        made = task_of(tiny, recipe, model, in_batch_teacher=second)
        data = made.data
        batch = made.draw(np.arange(6), 0)
        numbers = made.learn(batch, 1)
        found[second is not None] = numbers
        assert ("in_batch" in made.columns) == ("in_batch" in numbers) == (second is not None)
    with_it = found[True]
    total = found[False]["loss"] + 0.5 * with_it["in_batch"]
    assert with_it["loss"].item() == pytest.approx(total.item(), rel=1e-5)
    # the teacher's scores are those of its own vectors
    judge = checkpoint.load(taught_by, "retriever")
    drawn = data.examples.draw(np.arange(6), 0).ravel()
    queries = vectors.encode_queries(
        taught_by, [tiny.queries[q] for q in data.examples.queries[:6]]
    )
    (shard,) = vectors.Encoder({"model": taught_by}).passages(tiny.tokens)
    scores = np.array([[product(queries, q, shard[:], p) for p in drawn] for q in range(6)])
    assert judge.head == ("multi" if teaching == "multi" else "dense")
    np.testing.assert_allclose(
        batch.in_batch.numpy(), scores, atol=2e-2 if teaching == "multi" else 1e-4
    )
    if kind == "retriever":
        own = scoring.all_scores(model, batch, device, 10_000).double() / made.stage.temperature
        expected = losses.in_batch_margin_mse(own, batch.in_batch.double())
        assert with_it["in_batch"].item() == pytest.approx(expected.item(), rel=1e-5)


def product(queries, query, passages, passage):
    """The score of a query and a passage from stored vectors."""
    if not isinstance(queries, MultiVectors):
        return queries[query] @ passages[passage]
    asked, read = queries[query : query + 1].values, passages[passage : passage + 1].values
    return (asked @ read.astype(np.float32).T).max(1).sum()
