"""Killed at any moment and started again: the same bits, whoever was killed and however."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.workflow.conftest import SMOKE, end, wait_for

pytestmark = pytest.mark.workflow


class Training:
    """A training of the smoke run, to be made once more."""

    def __init__(self, checkout, name, output):
        self.checkout, self.target = checkout, f"results/smoke/{output}"
        self.output = checkout.folder / self.target
        self.states = checkout.results / "state" / name
        self.wanted = self.weights()
        shutil.rmtree(self.output)

    def weights(self) -> bytes:
        return (self.output / "model.safetensors").read_bytes()

    def steps(self) -> set[str]:
        return {path.name for path in self.states.glob("*/step-*.pt")}

    def begin(self):
        """Start the workflow; its process, and the trainer's, halted after it saved a first state."""
        before = self.steps()
        process = self.checkout.start(*SMOKE, self.target, CDMAE_SAVE_SECONDS="0")
        wait_for(lambda: self.steps() - before or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        trainer = int(next(self.states.glob("*/lease")).read_text().split()[1])
        os.kill(trainer, signal.SIGSTOP)
        return process, trainer

    def kill_trainer(self):
        process, trainer = self.begin()
        os.kill(trainer, signal.SIGKILL)
        said = process.communicate()[0]
        assert process.returncode == 1, said
        log = self.states.relative_to(self.checkout.results / "state")
        assert said.splitlines()[-1].startswith(f"results/smoke/logs/{log}.log: it was ended from")
        assert not self.output.exists()

    def kill_snakemake(self):
        """The trainer, left alone, saves its state and ends; as long as it lives no other one
        begins beside it.
        """
        process, trainer = self.begin()
        end(process, signal.SIGKILL)
        said = self.checkout.run(*SMOKE, self.target, status=1)
        assert f"is being trained already, by process {trainer} on " in said.splitlines()[-1]
        os.kill(trainer, signal.SIGCONT)
        wait_for(lambda: not Path(f"/proc/{trainer}").exists())
        assert not self.output.exists()

    def press_ctrl_c(self):
        process, trainer = self.begin()
        os.killpg(process.pid, signal.SIGINT)
        os.kill(trainer, signal.SIGCONT)
        said = process.communicate()[0]
        assert process.returncode != 0
        assert "is saved at step" in said
        assert not self.output.exists()

    def start_afresh(self, overlay):
        """With another setting the state is not used; it stays for the old setting."""
        before = self.steps()
        said = self.checkout.run(*SMOKE, overlay, self.target)
        assert "resumes from step" not in said
        assert self.weights() != self.wanted
        assert self.steps() == before

    def finish(self):
        said = self.checkout.run(*SMOKE, self.target)
        assert "resumes from step" in said
        assert self.weights() == self.wanted, "resumed, but not to the same bits"
        assert not self.steps(), "states are left behind"


def test_pretrain(finished):
    training = Training(finished, "pretrain/cdmae", "encoders/cdmae")
    training.kill_trainer()
    training.kill_snakemake()
    training.finish()


def test_train_retriever(finished, overlay):
    training = Training(finished, "train/cdmae-stage3", "trained/cdmae-stage3")
    training.press_ctrl_c()
    training.start_afresh(overlay("stages: {stage3: {alpha: 9.0}}"))
    training.finish()


def test_train_reranker(finished):
    training = Training(finished, "train/cdmae-reranker", "trained/cdmae-reranker")
    training.kill_trainer()
    training.finish()
