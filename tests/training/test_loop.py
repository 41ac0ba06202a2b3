"""The loop of every trainer: what stops it, and what it shows."""

import math
from pathlib import Path

import pytest
import torch
from tiny_training import TinyTask
from torch import nn

from cdmae.config.heads import Dense
from cdmae.errors import InputError
from cdmae.training import loop, state
from cdmae.training.ranks import Ranks

SETTINGS = Dense(collection="c", learning_rate=0.1)
ALONE = Ranks()
FINE = {"loss": 9.0, "encoder_loss": 4.0, "decoder_loss": 5.0, "spread": 0.2, "gradient_norm": 1.0}


class Linear(TinyTask):
    """Seven steps of a linear layer; values: a function of the step that replaces its numbers."""

    def __init__(self, interval=3, values=None):
        schedule = loop.Schedule(steps=10, warmup=2, last=7, interval=interval)
        super().__init__(nn.Linear(2, 1), SETTINGS, schedule)
        self.seen = []
        self.values = values

    def learn(self, batch, step, scaler):
        self.seen.append(batch)
        loss = self.network(torch.ones(2)).square().sum()
        loss.backward()
        if self.values:
            return self.values(step)
        return {"loss": loss.detach(), "spread": torch.ones(())}


def run(folder: Path, group: Ranks = ALONE, **how) -> list[int]:
    """Train a linear layer; the steps that were computed."""
    task = Linear(**how)
    with state.opened(folder, "x", group) as saved:
        loop.train(task, saved)
        if group.first:
            saved.write_table("steps.tsv", folder)
    return task.seen


def test_the_last_step_may_come_before_the_end_of_the_schedule(tmp_path):
    """Every step from 0 on is computed; the curve has a row per interval, and one for the last
    step.
    """
    assert run(tmp_path) == list(range(7))
    rows = [line.split("\t") for line in (tmp_path / "steps.tsv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["step", "3", "6", "7"]
    assert [float(row[-1]) for row in rows[1:]] == pytest.approx([0.1, 0.1 * 5 / 8, 0.1 * 4 / 8])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loss": math.nan}, "diverged: the loss of step 9 is nan"),
        ({"gradient_norm": math.inf}, "diverged: the gradient norm of step 9 is inf"),
        (
            {"decoder_loss": 33.0},
            r"diverged: the decoder loss of step 9 is 33, but guessing gives 6\.91",
        ),
        ({"spread": 1e-6}, "collapsed: all inputs of step 9 are the same to the model"),
    ],
)
def test_what_is_checked(wrong, message):
    """Bounds that only hold once the warm-up is over are not applied before; the sentence names the
    setting.
    """
    settings = Dense(collection="c", learning_rate=0.01)
    task = TinyTask(None, settings, None)
    task.shown = ("encoder_loss", "decoder_loss")
    task.guessing = math.log(1000)
    loop.check_numbers(task, FINE, 9, warm=True)
    with pytest.raises(InputError, match=message + r".*; lower learning_rate \(now 0\.01\)"):
        loop.check_numbers(task, {**FINE, **wrong}, 9, warm=True)
    if {"decoder_loss", "spread"} & wrong.keys():
        loop.check_numbers(task, {**FINE, **wrong}, 9, warm=False)


def test_a_failed_training_is_noticed_before_it_is_saved(tmp_path, monkeypatch):
    """Between two rows of the curve, too: no state holds weights that are not numbers."""
    monkeypatch.setenv("CDMAE_SAVE_SECONDS", "0")
    numbers = iter([1.0, math.nan])
    with pytest.raises(InputError, match="the loss of step 2 is nan"):
        run(
            tmp_path,
            values=lambda _: {"loss": torch.tensor(next(numbers)), "spread": torch.ones(())},
            interval=5,
        )
    assert [path.name[:13] for path in tmp_path.glob("*.pt")] == ["step-00000001"]


def test_a_full_disk_ends_the_training_and_keeps_earlier_states(tmp_path, monkeypatch):
    """With the system's error, which torch hides."""
    monkeypatch.setenv("CDMAE_SAVE_SECONDS", "0")
    kept = torch.save

    def save(payload, file) -> None:
        if payload["step"] == 3:
            file.close()
            file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
        kept(payload, file)

    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(OSError, match="No space left on device"):
        run(tmp_path)
    states = sorted(path.name[:13] for path in tmp_path.glob("*step-*"))
    assert states == ["step-00000001", "step-00000002"]


def test_a_meter_goes_on_from_its_state():
    """Means over an interval that was interrupted are those of all its steps."""
    meter, other = loop.Meter(torch.device("cpu"), "tiny"), loop.Meter(torch.device("cpu"), "tiny")
    for value in (1.0, 2.0):
        meter.add({"loss": torch.tensor(value)})
    other.load_state_dict(meter.state_dict())
    other.add({"loss": torch.tensor(6.0)})
    assert other.means() == {"loss": 3.0}
    other.add({"loss": torch.tensor(4.0)})
    assert other.means() == {"loss": 4.0}


def test_outputs_that_move_together_are_noted_once_even_across_a_kill(capsys):
    """The three trainings that collapsed unseen had .07, .08 and .16 of their first spread after
    the warm-up.
    """
    meter = loop.Meter(torch.device("cpu"), "tiny")

    def interval(spread: float, step: int | None) -> None:
        meter.add({"loss": torch.ones(()), "spread": torch.tensor(spread)})
        meter.means(step)

    interval(0.68, None)
    interval(0.01, None)  # still warming up
    assert meter.notes == []
    interval(0.68 * 0.24, 25)
    assert meter.notes == [], "the lowest that a training has come back from"
    saved, meter = meter.state_dict(), loop.Meter(torch.device("cpu"), "tiny")
    meter.load_state_dict(saved)
    interval(0.68 * 0.16, 50)
    (note,) = meter.notes
    assert note.startswith("at step 50 the outputs are 6 times closer together")
    interval(0.01, 75)
    assert meter.notes == [note] and capsys.readouterr().err.count("closer together") == 1
