"""The losses, with the numbers written out from their formulas."""

from math import exp, log

import pytest
import torch
from torch import tensor

from cdmae.finetuning import losses

QUERIES = tensor([[1.0, 0.0], [0.0, 2.0]])
PASSAGES = tensor([[[2.0, 1.0], [1.0, 0.5]], [[0.0, 1.0], [3.0, -1.0]]])
# q1: own group 2, 1; the other's 0, 3.    q2: own group 2, -2; the other's 2, 1.
LAST = tensor([[False, False, False, True], [False] * 4])
# The student agrees with the first row of the teacher; the second row is its mirror image.
SCORES = QUERIES @ PASSAGES.flatten(0, 1).T
TAUGHT = losses.kl(losses.group_scores(QUERIES, PASSAGES), tensor([[2.0, 1.0], [-2.0, 2.0]]))
QUARTERS = tensor([[log(3), log(1)]])
HALVES = tensor([[log(1), log(1)]])


def log_sum(*values: float) -> float:
    return log(sum(exp(value) for value in values))


def loss_of(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """The mean of -log p of the first of each query's scores."""
    return (log_sum(*first) - first[0] + log_sum(*second) - second[0]) / 2


P = exp(4) / (1 + exp(4))
MIRRORED = (2 * P - 1) * 4 / 2
ALL = loss_of((2, 1, 0, 3), (2, 1, 2, -2))
DROPPED = (-log(0.75) - log(0.5)) / 2
SYMMETRIC = (0.75 * log(1.5) + 0.25 * log(0.5) + 0.5 * log(2 / 3) + 0.5 * log(2)) / 2
MARGINS = tensor([[2.0, 1.0, -1.0], [4.0, 0.0, 4.0]])  # 1 and 3, 4 and 0
CASES = {
    "equation 10": (losses.in_batch_loss(SCORES), ALL),
    "equation 10, own group": (
        losses.listwise(losses.group_scores(QUERIES, PASSAGES)),
        loss_of((2, 1), (2, -2)),
    ),
    "equation 10, without the last passage": (
        losses.in_batch_loss(SCORES, LAST),
        loss_of((2, 1, 0), (2, 1, 2, -2)),
    ),
    "equation 11": (TAUGHT, MIRRORED),
    "equation 11, not symmetric": (
        losses.kl(HALVES, QUARTERS),
        0.75 * log(0.75 / 0.5) + 0.25 * log(0.25 / 0.5),
    ),
    "alpha": (
        losses.distillation(TAUGHT, losses.in_batch_loss(SCORES), 0.2),
        MIRRORED + 0.2 * ALL,
    ),
    "R-Drop": (losses.rdrop(QUARTERS, HALVES), DROPPED + SYMMETRIC),
    "R-Drop, half": (losses.rdrop(QUARTERS, HALVES, weight=0.5), DROPPED + SYMMETRIC / 2),
    # margins of the teacher: 2 and 3, 1 and 1
    "Margin-MSE": (
        losses.margin_mse(MARGINS, tensor([[5.0, 3.0, 2.0], [1.0, 0.0, 0.0]])),
        (1 + 0 + 9 + 1) / 4,
    ),
    # q1's positive has the scores 2 of q1 and 2.5 of the negative, q2's 2 and -1
    "passage-centric": (losses.passage_centric(QUERIES, PASSAGES), loss_of((2, 2.5), (2, -1))),
    "passage-centric, without the first query's negative": (
        losses.passage_centric(QUERIES, PASSAGES, excluded=LAST.roll(2, 1)),
        loss_of((2,), (2, -1)),
    ),
    "passage-centric, temperature": (
        losses.passage_centric(QUERIES, PASSAGES, 2),
        loss_of((1, 1.25), (1, -0.5)),
    ),
    # two queries and four passages: the positives are in columns 0 and 2
    "in-batch margins": (
        losses.in_batch_margin_mse(
            tensor([[3.0, 1.0, 0.0, 2.0], [1.0, 0.0, 2.0, 0.0]]),
            tensor([[5.0, 1.0, 2.0, 2.0], [0.0, 0.0, 4.0, 1.0]]),
        ),
        ((2 - 4) ** 2 + (1 - 3) ** 2 + (1 - 4) ** 2 + (2 - 4) ** 2 + (2 - 3) ** 2) / 2 / 3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_that_of_its_formula(name):
    found, expected = CASES[name]
    assert torch.as_tensor(found).item() == pytest.approx(expected, abs=1e-6)
