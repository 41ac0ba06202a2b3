"""Plans: operations against torch's counter and by hand, the paper on its node, and the table."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from made_up import make_model
from tiny_objectives import as_objective
from torch.utils.flop_counter import FlopCounterMode

from cdmae.config.load import load
from cdmae.config.objectives import Mae
from cdmae.config.starts import Start
from cdmae.formats import duration, plain_spaces
from cdmae.plan import machine
from cdmae.plan.machine import Machine
from cdmae.plan.plan import Network, Plan, Size, passage_cost, text

ROOT = Path(__file__).resolve().parents[2]
SIZE = Size(1000, 20.0, dict.fromkeys(("train", "dev", "test", "raw"), 320))


@pytest.fixture
def plan(values, toy, tmp_path):
    """The plan of the small config, whose collections have the same size."""
    toy.Settings.expected = lambda settings: (SIZE.passages, SIZE.words, SIZE.queries)
    return Plan(load({**values, "results": str(tmp_path)}))


def flops_of(plan):
    """Map every estimate with operations to them."""
    return {(each.part, each.name): each.flops for each in plan.estimates() if each.flops}


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_operations_are_those_of_the_model(tmp_path, family):
    model = tiny_models.model(family, attn_implementation="eager")
    model.save_pretrained(tmp_path)
    network = Network.read(str(tmp_path))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.full((2, 7), 4))
    assert 2 * network.forward(7) == counter.get_total_flops()


def test_networks_follow_their_start(tmp_path):
    sizes = {"vocabulary": 100, "layers": 3, "hidden": 2, "heads": 1, "feedforward": 4}
    small = Network(layers=3, width=2, inner=4, vocabulary=100)
    assert Network.of(Start(collection="c", **sizes)) == small
    assert Network.of(Start(checkpoint="some/model")) == Network()
    model = make_model(tmp_path, num_hidden_layers=3, hidden_size="wide")
    assert Network.read(model) == Network(layers=3)


def test_the_operations_of_objectives():
    """Layers written out; a backward pass is two forward ones. MASTER has two spans and passes."""
    network = Network(layers=3, width=2, inner=4, vocabulary=10)
    encoder = Mae(start="s", collection="c", encoder_ratio=0.3, decoder_ratio=0.5, decoder_layers=2)
    mlm, master = (
        passage_cost(network, as_objective(name, encoder), SIZE) for name in ("mlm", "master")
    )
    n = SIZE.tokens(encoder.max_length)
    span = SIZE.tokens(2 * encoder.max_length) / 2
    layer, head = network.layer, network.head
    assert mlm == pytest.approx(3 * (3 * layer(n) + head(0.3 * n)))
    assert master == pytest.approx(2 * 3 * ((2 * 3 + 4) * layer(span) + head(0.8 * span)))


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


def test_every_head_encodes_the_passages_and_a_labelling_teacher_scores_them_all(values, plan):
    values["stages"]["both"] = {"kind": "retriever", "head": "unified"}
    values["systems"]["both"] = values["systems"]["one"] | {"stage": "both"}
    for uses in ("dense", "sparse"):
        values["systems"][uses] = {"kind": "head", "of": "both", "uses": uses}
    values["stages"]["stage3"] |= {"labels": 0.9, "split": "raw", "random_negatives": 0}
    stage = load(values).stages["stage3"]
    plan.config = load({**values, "results": plan.config.results})
    found = flops_of(plan)
    text = plan.network("dense").forward(SIZE.tokens(144))
    words = plan.network("dense").head(SIZE.tokens(144))
    assert found["searches", "dense"] == pytest.approx(2 * 1000 * text)
    assert found["searches", "sparse"] == pytest.approx(2 * 1000 * (text + words))
    pair = plan.network("cross").forward(10 + SIZE.tokens(192))
    assert found["teachers", "three"] == pytest.approx(320 * (1 + stage.depth) * pair)


def test_pre_training_stops_at_take_step(values, plan):
    whole = flops_of(plan)["pre-training", "cdmae"]
    values["encoders"]["cdmae"]["take_step"] = 4
    found = flops_of(Plan(load({**values, "results": plan.config.results})))
    assert found["pre-training", "cdmae"] == pytest.approx(whole * 4 / 10)


def test_encoders_of_further_seeds_count_if_a_system_needs_them(values, plan):
    for name, system in values["systems"].items():
        if system["kind"] in ("retriever", "reranker"):
            system["once"] = name != "one"
    found = flops_of(Plan(load({**values, "seed": [1, 2], "results": plan.config.results})))
    assert [name for part, name in found if part == "pre-training"] == ["mae", "cdmae", "cdmae@2"]


def test_the_plan_adds_the_start_of_jobs_and_tells_missing_space(plan, monkeypatch):
    fast = Machine(2, 1, "h100")
    page = text(plan, fast)
    assert "GPU-hours" in page and "NOT ENOUGH" not in page
    seconds = 8 * len(plan.estimates()) + sum(flops_of(plan).values()) / fast.rate
    assert f"time   {plain_spaces(duration(seconds))} or more" in page
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, 1000))
    assert "NOT ENOUGH" in text(plan, Machine(2))


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA H100 PCIe", "h100"), ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"), ("Tesla T4", "t4"),
        ("NVIDIA RTX A1000 Laptop GPU", "other"), ("NVIDIA T400", "other"), ("", ""),
    ],
)  # fmt: skip
def test_gpus_are_known_by_whole_words_of_their_names(monkeypatch, name, gpu):
    monkeypatch.setattr(machine.circumstances, "gpus", lambda: [name] if name else [])
    monkeypatch.delenv("CDMAE_DEVICE", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.here().gpu == gpu


def test_the_mean_of_cut_lengths():
    """Against a million draws of the distribution that is assumed."""
    lengths = np.random.default_rng(1).gamma(2.0, 100 * 1.35 / 2, 1_000_000)
    expected = 2 + np.minimum(lengths, 62).mean()
    assert Size(1, 100.0, {}).tokens(64) == pytest.approx(expected, rel=0.002)
