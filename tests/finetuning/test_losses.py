"""The losses, with the numbers written out from their formulas."""

import math

import pytest
import torch

from cdmae.finetuning import losses

QUERIES = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
PASSAGES = torch.tensor([[[2.0, 1.0], [1.0, 0.5]], [[0.0, 1.0], [3.0, -1.0]]])
# q1: own group 2, 1; the other's 0, 3.    q2: own group 2, -2; the other's 2, 1.


def log_sum(*values: float) -> float:
    return math.log(sum(math.exp(value) for value in values))


@pytest.mark.parametrize(
    ("candidates", "how"),
    [
        (((2, 1, 0, 3), (2, 1, 2, -2)), {}),
        (((2, 1), (2, -2)), {"in_batch": False}),
        # The last passage of the batch is as good as the first query's positive.
        (
            ((2, 1, 0), (2, 1, 2, -2)),
            {"excluded": torch.tensor([[False, False, False, True], [False] * 4])},
        ),
    ],
    ids=["all passages of the batch", "the own group only", "without other positives"],
)
def test_eq10_by_hand(candidates, how):
    expected = sum(log_sum(*scores) - 2 for scores in candidates) / 2
    assert losses.contrastive(QUERIES, PASSAGES, **how).item() == pytest.approx(expected, abs=1e-6)


def test_eq11_kl_by_hand_and_zero_for_equal_distributions():
    student = torch.tensor([[math.log(1), math.log(3)], [5.0, 5.0]])
    teacher = torch.tensor(
        [[math.log(3), math.log(1)], [7.0, 7.0]]
    )  # softmax (3/4, 1/4) against (1/4, 3/4)
    first = 0.75 * math.log(0.75 / 0.25) + 0.25 * math.log(0.25 / 0.75)
    assert losses.kl(student, teacher).item() == pytest.approx(first / 2, abs=1e-6)
    scores = torch.randn(5, 7, generator=torch.Generator().manual_seed(4))
    assert losses.kl(scores, scores + 3).item() == pytest.approx(0, abs=1e-6)
    assert losses.kl(scores, scores.flip(-1)).item() > 0.1


def test_distillation_adds_alpha_times_the_contrastive_loss():
    kl = losses.kl(losses.group_scores(QUERIES, PASSAGES), torch.tensor([[2.0, 1.0], [0.0, 4.0]]))
    p = math.exp(4) / (
        1 + math.exp(4)
    )  # the first query agrees with the teacher, the second is its mirror image
    by_hand = (p * 4 - (1 - p) * 4) / 2
    contrastive = losses.contrastive(QUERIES, PASSAGES)
    assert losses.group_scores(QUERIES, PASSAGES).tolist() == [[2.0, 1.0], [2.0, -2.0]]
    expected = by_hand + 0.2 * contrastive.item()
    assert losses.distillation(kl, contrastive, 0.2).item() == pytest.approx(expected, abs=1e-6)


def test_listwise_by_hand():
    scores = torch.tensor([[1.0, 2.0, 0.0], [3.0, 3.0, 3.0]])
    expected = ((log_sum(1, 2, 0) - 1) + math.log(3)) / 2
    assert losses.listwise(scores).item() == pytest.approx(expected, abs=1e-6)


def test_rdrop_by_hand():
    first = torch.tensor([[math.log(3), math.log(1)]])
    second = torch.tensor([[math.log(1), math.log(1)]])
    listwise = (-math.log(0.75) - math.log(0.5)) / 2
    there = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    back = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert losses.rdrop(first, second).item() == pytest.approx(
        listwise + (there + back) / 2, abs=1e-6
    )
    assert losses.rdrop(first, second, weight=0.5).item() == pytest.approx(
        listwise + (there + back) / 4, abs=1e-6
    )
    assert losses.rdrop(first, first).item() == pytest.approx(-math.log(0.75), abs=1e-6)


def test_margin_mse_by_hand():
    """Margins of the student 1 and 3, 4 and 0; of the teacher 2 and 3, 1 and 1."""
    student = torch.tensor([[2.0, 1.0, -1.0], [4.0, 0.0, 4.0]])
    teacher = torch.tensor([[5.0, 3.0, 2.0], [1.0, 0.0, 0.0]])
    assert losses.margin_mse(student, teacher).item() == pytest.approx((1 + 0 + 9 + 1) / 4)


@pytest.mark.parametrize("temperature", [1, 2])
def test_the_passage_centric_loss_by_hand(temperature):
    """q1's positive has the scores 2 of q1 and 2.5 of the negative, q2's 2 and -1."""
    scores = ((2, 2.5), (2, -1))
    expected = (
        sum(
            log_sum(*(score / temperature for score in row)) - row[0] / temperature
            for row in scores
        )
        / 2
    )
    loss = losses.passage_centric(QUERIES, PASSAGES, temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-6)
