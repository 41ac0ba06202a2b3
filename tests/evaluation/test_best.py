"""The system to use: the simplest that no other significantly exceeds, by queries alone."""

import numpy as np
import pandas as pd
import pytest

from cdmae.evaluation.best import choose, untuned
from cdmae.evaluation.significance import paired

COMPLEXITY = {"bm25": 0, "other-bm25": 0, "dense": 1, "fused": 2}
SPLIT = ("docs", "dev")


def frame(**leads):
    """Values of 40 queries; each system leads the common ones by some points, with some noise."""
    random = np.random.default_rng(4)
    common = random.random(40)
    noise = {name: random.normal(0, 0.05, 40) for name in leads}
    return pd.DataFrame({n: common + leads[n] + noise[n] - noise[n].mean() for n in leads})


@pytest.mark.parametrize(
    ("leads", "pick", "best"),
    [
        ({"bm25": 0.0, "dense": 0.005, "fused": 0.008}, "bm25", "fused"),
        ({"bm25": 0.0, "dense": 0.2, "fused": 0.205}, "dense", "fused"),
        ({"bm25": 0.0, "dense": 0.1, "fused": 0.3}, "fused", "fused"),
        ({"fused": 0.3, "bm25": 0.305, "dense": 0.1}, "bm25", "bm25"),
        ({"bm25": 0.0, "other-bm25": 0.2, "fused": 0.201}, "other-bm25", "fused"),
        ({"dense": 0.1}, "dense", "dense"),
    ],
)
def test_the_choice_is_the_simplest_that_the_best_does_not_exceed(leads, pick, best):
    values = frame(**leads)
    found = choose(values, COMPLEXITY)
    assert (found.pick, found.best) == (pick, best)
    if pick == best:
        assert found.lead is None
    else:
        assert found.lead == paired(values[best].to_numpy(), values[pick].to_numpy())
        assert not found.lead.significant


def test_a_noisy_leader_hides_no_system_that_is_always_a_little_better():
    values = frame(bm25=0.0, dense=0.1)
    values["fused"] = values["dense"] + np.resize([0.9, -0.88], len(values))
    found = choose(values, COMPLEXITY)
    assert (found.pick, found.best) == ("dense", "fused")
    assert not paired(values["fused"].to_numpy(), values["bm25"].to_numpy()).significant


def test_a_fusion_is_judged_by_weights_that_the_query_did_not_choose():
    values = pd.Series([0.9, 0.8, 0.7], ["a", "b", "c"])
    about = {"on": [*SPLIT], "measure": "RR@10", "weights": [0.95, 0.05]}
    about["held_out"] = {"c": 0.3, "b": 0.2, "a": 0.1}
    assert untuned(values, about, SPLIT, "RR@10").tolist() == [0.1, 0.2, 0.3]
    assert untuned(values, about, ("docs", "test"), "RR@10") is values
    assert untuned(values, about, SPLIT, "R@50") is values
    assert untuned(values, {}, SPLIT, "RR@10") is values
    alone = about | {"weights": [1.0, 0.0]}
    assert untuned(values, alone, SPLIT, "RR@10") is values, "this system's own"
