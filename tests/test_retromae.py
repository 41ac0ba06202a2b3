"""RetroMAE's masks, and the bags of DupMAE and BowDpr; their formulas are in `benchmarks.naive`."""

import dataclasses

import numpy as np
import torch
from tiny_objectives import SETTINGS, V, bounds, first, network_of, reader, same, whole

from cdmae.pretraining.objectives import _bags, bowdpr, dupmae


def test_retromae_predicts_every_token_and_sees_the_original():
    """Nothing is masked in the decoder's input; specials are seen by all and predicted by none."""
    step = first("retromae")
    masked = step.sides["decoder"]
    inner = np.concatenate([masked.inputs.values[a + 1 : b - 1] for a, b in bounds(masked)])
    assert (inner == np.concatenate([masked.labels[a + 1 : b - 1] for a, b in bounds(masked)])).all()
    assert ((masked.inputs.values > 4) == masked.chosen).all()


def test_retromae_masks_each_position_on_its_own():
    """Each position hides itself and floor(p n) tokens drawn for it alone, the same whatever the batch."""
    source = reader("retromae", lengths=(8,) * 40)
    step = next(source.steps(0, 1))
    masked = step.sides["decoder"]
    places = masked.hide(masked.texts)
    assert places.shape == (6, 8, 8)
    assert places[:, range(8), range(8)].all()
    specials = [(masked.inputs.values[a:b] == 4).any() for a, b in bounds(masked)]
    ordinary = places[~np.array(specials)]
    assert set(ordinary.sum(2).ravel().tolist()) == {4, 5}  # four drawn of eight, perhaps itself among them
    assert len({row.tobytes() for row in places.reshape(-1, 8)}) > 35
    assert abs(places[:, ~np.eye(8, dtype=bool)].mean() - 0.5) < 0.1
    alone = masked[2:3]
    assert (alone.hide(alone.texts)[0] == places[2]).all()


def test_a_bag_holds_every_word_of_a_passage_once():
    """Whatever its order and number, special tokens left out; and how many words there are in all."""
    step = first("bowdpr")
    found, number = _bags.bags(whole(step)["passage"], V)
    masked = step.sides["passage"]
    for row, (a, b) in enumerate(bounds(masked)):
        words = [piece for piece in masked.labels[a + 1 : b - 1].tolist() if piece > 4]
        assert found[row].nonzero()[:, 0].tolist() == sorted(set(words))
        assert number[row] == max(1, len(words))


def test_bowdpr_weighs_its_bag_and_dupmae_pools_some_passages_at_a_time(monkeypatch):
    batch = whole(first("bowdpr"))
    plain = network_of("bowdpr")
    weighted = bowdpr.BowDpr(plain.model, dataclasses.replace(SETTINGS, bag_weight=3.0), 5)
    one, other = plain(batch)[1]["decoder_loss"], weighted(batch)[1]["decoder_loss"]
    torch.testing.assert_close(3 * one, other)
    network, batch = network_of("dupmae"), whole(first("dupmae"))
    expected = network(batch)[0]
    monkeypatch.setitem(dupmae.LOGITS_AT_ONCE, "cpu", 1)
    same(network, network(batch)[0], expected)
