"""Progress lines: their text and their frequency."""

import time

import pytest

from cdmae import log
from cdmae.log import Progress, amount, say


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


def test_the_line(run):
    line = run(steps=2, loss=5.1234, learning_rate=3e-4)[0]
    what, numbers = "pretrain cdmae: 20 of 4,000 steps (0 %)", "loss 5.12, learning rate 0.000300"
    assert line == f"{what}, 10.0 steps/s, 6 min 38 s left, {numbers}"
    assert run(total=0, steps=2)[0] == "pretrain cdmae: 20 steps, 10.0 steps/s"


def test_a_line_after_2_seconds_and_then_each_10_at_the_command_s_own_pace(run):
    lines = run()
    assert [line.split()[2] for line in lines] == ["20", "120", "220", "300"]
    assert lines[-1].endswith("after 30 s")
    assert run(seconds=0.01) == []
    assert (
        "1,020 of 4,000 steps (25 %), 10.0 steps/s, 4 min 58 s left" in run(start=1000, steps=2)[0]
    )


def test_numbers_are_read_only_when_printed(run):
    class Number:
        read = 0

        def __float__(self):
            Number.read += 1
            return 1.0

    run(steps=30, loss=Number())
    assert Number.read == 4


def test_only_the_first_process_of_a_job_prints(run, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert run() == []
    say("hello")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("RANK", "0")
    say("hello")
    assert capsys.readouterr().err == "hello\n"


def test_amounts():
    expected = ["0.00", "0.00123", "5.12", "45.2", "1,234", "-250"]
    assert [amount(each) for each in (0, 0.00123, 5.1234, 45.23, 1234.5, -250)] == expected
    assert log.amount(float("nan")) == "nan"
