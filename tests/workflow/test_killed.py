"""Killed at any moment and started again: the same bits, whoever was killed and however."""

import os
import signal
from pathlib import Path

import pytest

from tests.workflow.conftest import SMOKE, Training, wait_for

pytestmark = pytest.mark.workflow


class Halted(Training):
    """A training of the smoke run, halted after it saved a first state."""

    def begin(self):
        """Start the workflow; its process, and that of the trainer."""
        before = self.steps()
        process = self.checkout.start(*SMOKE, self.target, CDMAE_SAVE_SECONDS="0")
        wait_for(lambda: self.steps() - before or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        trainer = int(next(self.states.glob("*/lease")).read_text().split()[1])
        os.kill(trainer, signal.SIGSTOP)
        return process, trainer

    def finish(self):
        said = self.checkout.run(*SMOKE, self.target)
        assert "resumes from step" in said
        assert self.weights() == self.wanted, "resumed, but not to the same bits"
        assert not self.steps(), "states are left behind"


def test_a_killed_trainer_and_a_killed_workflow(finished):
    training = Halted(finished, "pretrain", "cdmae", "encoders/cdmae")
    process, trainer = training.begin()
    os.kill(trainer, signal.SIGKILL)
    said = process.communicate()[0]
    assert process.returncode == 1, said
    assert said.splitlines()[-1].startswith("results/smoke/logs/pretrain/cdmae.log: it was killed")

    process, trainer = training.begin()
    process.kill()
    process.wait()
    said = finished.run(*SMOKE, training.target, status=1)
    assert f"is being trained already, by process {trainer} on " in said.splitlines()[-1]
    os.kill(trainer, signal.SIGCONT)
    wait_for(lambda: not Path(f"/proc/{trainer}").exists())
    assert not training.output.exists(), "left alone, it has saved its state and ended"
    training.finish()


def test_ctrl_c(finished):
    training = Halted(finished, "train", "cdmae-stage3", "trained/cdmae-stage3")
    process, trainer = training.begin()
    os.killpg(process.pid, signal.SIGINT)
    os.kill(trainer, signal.SIGCONT)
    said = process.communicate()[0]
    assert process.returncode != 0 and "is saved at step" in said
    training.finish()
