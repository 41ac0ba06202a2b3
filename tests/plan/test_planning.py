"""Plans: operations against torch's counter and by hand."""

import pytest
import tiny_models
import torch
from torch.utils.flop_counter import FlopCounterMode

from cdmae.config.load import load
from cdmae.plan.plan import Network, Plan, Size, passage_cost

SIZE = Size(1000, 20.0, dict.fromkeys(("train", "dev", "test"), 320))


@pytest.fixture
def plan(values, toy, tmp_path):
    """The plan of the small config, whose collections have the same size."""
    toy.Settings.expected = lambda settings: (SIZE.passages, SIZE.words, SIZE.queries)
    return Plan(load({**values, "results": str(tmp_path)}))


def flops_of(plan):
    """Map every estimate with operations to them."""
    return {(each.part, each.name): each.flops for each in plan.estimates() if each.flops}


def test_operations_are_those_of_the_model(tmp_path):
    model = tiny_models.model("bert", attn_implementation="eager")
    model.save_pretrained(tmp_path)
    network = Network.read(str(tmp_path))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.full((2, 7), 4))
    assert 2 * network.forward(7) == counter.get_total_flops()


def test_trainings_scores_and_searches_by_hand(plan):
    """10 steps of 2,048; one epoch of 320 queries, groups of 4."""
    network = plan.network("one")
    found = flops_of(plan)
    passage = passage_cost(network, plan.config.encoders["cdmae"], SIZE)
    assert found["pre-training", "cdmae"] == pytest.approx(10 * 2048 * passage)
    text = network.forward(SIZE.tokens(144))
    assert found["fine-tuning", "one"] == pytest.approx(320 * 4 * 4 * text)
    pair = network.forward(10 + SIZE.tokens(192))
    # 4 pairs forward, the best 2 of them forward and backward, twice with R-Drop
    assert found["fine-tuning", "cross"] == pytest.approx(320 * (4 + 2 * 2 * 3) * pair)
    assert found["teachers", "three"] == pytest.approx(320 * (1 + 3) * pair)
    assert found["searches", "one"] == pytest.approx(2 * 1000 * text)
    depth = plan.config.systems["cross"].depth
    assert found["searches", "cross"] == pytest.approx(3 * 320 * depth * pair)
    assert ("searches", "bm25") not in found and ("pre-training", "none") not in found


def test_pre_training_stops_at_take_step(values, plan):
    whole = flops_of(plan)["pre-training", "cdmae"]
    values["encoders"]["cdmae"]["take_step"] = 4
    found = flops_of(Plan(load({**values, "results": plan.config.results})))
    assert found["pre-training", "cdmae"] == pytest.approx(whole * 4 / 10)
