"""Terminals and logs receive no control characters, no endless lines, and progress in lines."""

import time

import pytest

from cdmae.errors import said
from cdmae.importance import shading
from cdmae.importance.shading import Word
from cdmae.log import Progress, say
from cdmae.retrieval.answers import Answer, show
from cdmae.terminal import LONGEST, printable

CLEAR = "\x1b]0;owned\x07\x1b[2J"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, caf\u00e9, \U0001f600", "plain, caf\u00e9, \U0001f600"),
        ("a\rb\x9b2J\u202ec\x00\udcff", r"a\rb\x9b2J\u202ec\x00\udcff"),
    ],
)
def test_control_characters_are_shown_as_escapes(text, shown):
    assert printable(text) == shown
    long = printable("begin" + text * 10**5 + "end")
    assert long.startswith("begin") and long.endswith("end") and len(long) < LONGEST + 50


def test_every_line_that_is_printed_is_printable(capsys):
    say(CLEAR)
    long = "x" * 10**6
    answers = [Answer(1.0, CLEAR, CLEAR, CLEAR), Answer(1.0, long, long, long)]
    lines = [capsys.readouterr().err.strip(), *said(f"one{CLEAR}\ntwo").split("\n")]
    lines += show(answers, width=80).split("\n")
    assert all(line.isprintable() and len(line) < 1000 for line in lines)
    assert CLEAR not in shading.as_numbers([Word(CLEAR, 1.0)])
    assert CLEAR not in shading.for_terminal([Word(CLEAR, 1.0), Word(CLEAR, 0.0)])


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that takes `steps` steps of `seconds` seconds and returns the lines."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def work(*, total=4000, start=0, seconds=1.0, steps=30, **numbers):
        with Progress(total, label="pretrain cdmae", start=start) as shown:
            for _ in range(steps):
                clock[0] += seconds
                shown.advance(10, **numbers)
        return capsys.readouterr().err.splitlines()

    return work


def test_a_line_names_the_pace_and_the_remaining_time(run):
    line = run(steps=2, loss=5.1234, learning_rate=3e-4)[0]
    what, numbers = "pretrain cdmae: 20 of 4,000 steps (0 %)", "loss 5.12, learning rate 0.000300"
    assert line == f"{what}, 10.0 steps/s, 6 min 38 s left, {numbers}"
    assert run(total=0, steps=2)[0] == "pretrain cdmae: 20 steps, 10.0 steps/s"
    assert "10.0 steps/s, 4 min 58 s left" in run(start=1000, steps=2)[0]


def test_a_line_after_2_seconds_and_then_each_10(run, monkeypatch):
    assert [line.split()[2] for line in run()] == ["20", "120", "220", "300"]
    assert run(seconds=0.01) == []
    monkeypatch.setenv("RANK", "1")
    assert run() == [], "only the first process of a job prints"
