"""What a step reads: every passage once per epoch, masks of its own, the same however it is cut."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_objectives
from tiny_objectives import CLS, SEP, SETTINGS, bounds

from cdmae import masking
from cdmae.pretraining.batches import Step
from cdmae.pretraining.reader import PASSAGES_AT_ONCE, Reader

LENGTHS = tuple(int(n) for n in np.random.default_rng(3).integers(0, 20, 37))
MASKED = replace(SETTINGS, encoder_masking="whole_word", decoder_masking="idf")


def reader(batch: int, seed: int = 1) -> Reader:
    source = tiny_objectives.reader("mae", replace(MASKED, batch=batch), LENGTHS)
    source.seed = seed
    return source


def test_every_epoch_has_every_passage_once():
    """Batches run on across epochs; each epoch has an order of its own, a function of the seed."""
    source = reader(batch=8)
    epochs, rows = source.passages(np.arange(3 * 37))
    assert epochs.tolist() == [0] * 37 + [1] * 37 + [2] * 37
    orders = rows.reshape(3, 37)
    assert all(sorted(order) == list(range(37)) for order in orders.tolist())
    assert len({tuple(order) for order in orders.tolist()}) == 3
    assert (reader(batch=5).passages(np.arange(111))[1] == rows).all()
    assert (reader(batch=8, seed=2).passages(np.arange(111))[1] != rows).any()


def rows_of(step: Step, side: str) -> set[tuple[tuple[int, ...], ...]]:
    """Inputs, choices and labels of every passage, in no order."""
    masked = step.sides[side]
    arrays = (masked.inputs.values, masked.chosen, masked.labels)
    return {tuple(tuple(array[a:b].tolist()) for array in arrays) for a, b in bounds(masked)}


@pytest.mark.parametrize("at_once", [16, PASSAGES_AT_ONCE])
def test_a_step_does_not_depend_on_where_reading_begins(at_once, monkeypatch):
    """What resuming relies on: step 7 read alone, after others, or with more at once is the same."""
    monkeypatch.setattr("cdmae.pretraining.reader.PASSAGES_AT_ONCE", at_once)
    source = reader(batch=8)
    assert len(list(source.steps(3, 10))) == 7
    expected = list(source.steps(0, 12))[7]
    for found in (next(source.steps(7, 12)), source.read(5, 9)[2]):
        for side in ("encoder", "decoder"):
            for name in ("chosen", "labels"):
                assert (
                    getattr(found.sides[side], name) == getattr(expected.sides[side], name)
                ).all()
            assert (found.sides[side].inputs.values == expected.sides[side].inputs.values).all()


def test_masks_are_those_of_the_strategy():
    """Equation 1 on each side with a key per epoch; specials are framed around and never chosen."""
    source = reader(batch=74)  # two epochs, whose passages are sorted by length together
    (step,) = source.steps(0, 1)
    for side, settings in source.sides.items():
        expected = set()
        for epoch in (0, 1):
            _, rows = source.passages(np.arange(epoch * 37, (epoch + 1) * 37))
            batch = masking.read(source.tokens, rows, 10, source.vocabulary, source.values["idf"])
            inputs, chosen = masking.mask(
                batch, settings, source.vocabulary, masking.key(1, side, epoch)
            )
            ends = np.stack([batch.ids[:, 0], batch.ids[np.arange(37), batch.lengths + 1]])
            assert ends.tolist() == [[CLS] * 37, [SEP] * 37]
            expected |= {
                tuple(
                    tuple(grid[row, : length + 2].tolist()) for grid in (inputs, chosen, batch.ids)
                )
                for row, length in enumerate(batch.lengths.tolist())
            }
        assert rows_of(step, side) == expected
