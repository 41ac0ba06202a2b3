"""Condenser's early layers, coCondenser's contrast by hand; their formulas are in `benchmarks.naive`."""

import dataclasses

import pytest
import torch
from tiny_objectives import SETTINGS, first, language_model, same, whole

from benchmarks.naive import Naive
from cdmae.errors import InputError
from cdmae.pretraining.objectives import condenser
from cdmae.pretraining.objectives.cocondenser import contrast


@pytest.mark.parametrize(("early", "layers"), [(0, 1), (1, 1), (2, 2)])
def test_condenser_reads_late_cls_and_early_tokens(early, layers):
    """The head on [h_cls late; h early], and the late MLM loss; 0 is half of the three layers."""
    settings = dataclasses.replace(SETTINGS, early_layers=early)
    network, step = condenser.Condenser(language_model(), settings, 5).eval(), first("condenser")
    assert network.early == layers
    same(network, network(whole(step))[0], Naive("condenser", network)(step))


def test_condenser_needs_late_layers():
    with pytest.raises(InputError, match="early_layers is 3; allowed: up to 2, the start has 3 layers"):
        condenser.Condenser(language_model(), dataclasses.replace(SETTINGS, early_layers=3), 5)


def test_cocondenser_contrast_by_hand():
    vectors = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    shares = torch.tensor([[2.0, 0.0, 0.0]] * 2 + [[3.0, 0.0, 0.0]] * 2).softmax(1)[:, 0]
    torch.testing.assert_close(contrast(vectors), -shares.log().mean())
