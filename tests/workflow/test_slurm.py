"""Submitting through workflow/profiles/slurm, to a SLURM of two nodes that slurm.sh starts on this
machine.

Two runs at once make parts of the smoke run again. A training that is warned before its time limit,
or requeued, ends in the weights of one that was left alone.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.workflow.conftest import SMOKE, Checkout, Training, wait_for

SCRIPT = Path(__file__).with_name("slurm.sh")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "unshare")
ENCODER = "encoders/cdmae"
RUN = "runs/mae-stage1/evaluated"
TERMS = "masked_terms/cdmae.json"

# What a user of two-node pre-training writes into the profile.
NODES = ("nodes=2", "gpu=2", "gres=gpu:1", "tasks=2", "tasks_per_gpu=0", "mpi=srun")
RESOURCES = [f"pretrain:{each}" for each in NODES]
PROFILE = (
    "--workflow-profile", "workflow/profiles/slurm", "--jobs", "3", "--latency-wait", "20",
    "--slurm-init-seconds-before-status-checks", "1",
)  # fmt: skip
# The executor asks for the jobs after 1 s, 11 s more, 21 s more and so on; here, every second.
OFTEN = """\
  - |
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
    RemoteExecutor.next_seconds_between_status_checks = property(lambda _: 1, lambda *_: None)
"""
FIRST = "  - import subprocess\n"


def missing() -> str:
    """Why there can be no SLURM here."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if not all(shutil.which(name, path=path) for name in PROGRAMS):
        return "needs SLURM (apt install slurmctld slurmd slurm-client munge)"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "needs the Python package snakemake-executor-plugin-slurm"
    return "slurmd runs as root only" if os.geteuid() else ""


pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(bool(missing()), reason=missing() or "nothing"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A SLURM of two nodes; its commands find it as long as the tests of this file run.

    It ends with the pipe that leads to it, and so with this process, however that ends.
    """
    folder = tmp_path_factory.mktemp("slurm")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen([SCRIPT, folder], text=True, **pipes) as held,
    ):
        if not held.stdout.readline():
            said = held.communicate()[1].strip() or "nothing"
            pytest.skip(f"SLURM does not start here; it said: {said.splitlines()[-1]}")
        for name in os.environ:  # of another SLURM, in a job of which this may run
            if name.startswith(("SLURM_", "SBATCH_", "SRUN_", "SQUEUE_")):
                patch.delenv(name)
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        yield folder
        for process in SUBMITTED:  # those that a failed test has left
            process.kill()


SUBMITTED: list[subprocess.Popen] = []


class Submitted(Training):
    """A training of the smoke run, made again by a job of SLURM and suspended in the middle."""

    def __init__(self, checkout: Checkout, rule: str, name: str, output: str, *targets: str):
        super().__init__(checkout, rule, name, output)
        checkout.edit(f"{PROFILE[1]}/profile.yaml", FIRST, OFTEN + FIRST)
        more = [f"results/smoke/{target}" for target in targets]
        words = (self.target, *more, *SMOKE, *PROFILE, "--set-resources", *RESOURCES)
        self.process = checkout.start(*words, CDMAE_SAVE_SECONDS="0")
        SUBMITTED.append(self.process)

    def suspend(self) -> None:
        """Suspend its processes, on whatever node they are, when the first state is saved."""
        owner = self.wait_for(lambda: next(self.states.glob("*/lease"), None)).read_text()
        self.job = re.search(r"job (\d+)", owner)[1]
        trainers = self.trainers()
        self.wait_for(self.steps)
        for trainer in trainers:
            trainer.suspend()

    def wait_for(self, condition):
        found = wait_for(lambda: condition() or self.process.poll() is not None, seconds=600)
        assert self.process.poll() is None, self.process.communicate()[0]
        return found

    def trainers(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it has ended meanwhile
                is_script = any(word.endswith(".call.py") for word in process.cmdline()[:3])
                if is_script and process.environ().get("SLURM_JOB_ID") == self.job:
                    found.append(process)
        return found

    def finish(self) -> str:
        """Wait for the end; what all attempts said."""
        said = self.process.communicate()[0]
        assert self.process.returncode == 0, said + self.failed_jobs()
        assert "resumes from step" in self.log.read_text()
        assert self.weights() == self.wanted, "resumed, but not to the same bits"
        assert not self.steps(), "states are left behind"
        return said

    def failed_jobs(self) -> str:
        """What the jobs that SLURM counts as failed have said; the logs of others are deleted."""
        logs = (self.checkout.folder / ".snakemake/slurm_logs").rglob("*.log")
        return "".join(path.read_text() for path in logs)


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def warned(cluster, whole, tmp_path_factory):
    """A retriever that is warned, its search, an encoder on two nodes, and a job without a model."""
    checkout = whole.copy(tmp_path_factory.mktemp("slurm") / "checkout")
    for folder in (ENCODER, RUN):
        shutil.rmtree(checkout.results / folder)
    (checkout.results / TERMS).unlink()
    name = "mae-stage1"
    training = Submitted(checkout, "train", name, f"trained/{name}", RUN, ENCODER, TERMS)
    training.suspend()
    # less than the five minutes of the profile; SLURM looks at limits twice a minute
    run("scontrol", "update", f"JobId={training.job}", "EndTime=now+3minutes")
    return training


@pytest.fixture(scope="module")
def requeued(warned, whole, tmp_path_factory):
    """The same encoder on two nodes, whose job SLURM starts again."""
    checkout = whole.copy(tmp_path_factory.mktemp("slurm") / "checkout")
    training = Submitted(checkout, "pretrain", "cdmae", ENCODER)
    training.suspend()
    run("scontrol", "requeue", training.job)
    return training


def test_the_workflow_resumes_after_a_warning_next_to_a_stage_on_two_nodes(warned, requeued, whole):
    """By the profile's SIGUSR1, the trainer saves and ends, and the retry resumes. Two torchruns
    train together, on nodes with names and process ids of their own.
    """
    said = warned.finish()
    assert "SIGUSR1: mae-stage1 is saved at step" in warned.failed_jobs()
    assert said.count("Trying to restart") == 1
    assert "account" not in said, "the executor warns of what the profile leaves out on purpose"
    results = warned.checkout.results
    file = f"{RUN}/pydocs.dev.parquet"
    assert (results / file).read_bytes() == (whole.results / file).read_bytes()
    assert json.loads((results / ENCODER / "about.json").read_text())["processes"] == 2
    assert (results / TERMS).exists() and not list((results / "state").rglob("step-*.pt"))


def test_requeued_on_two_nodes(warned, requeued):
    """As after a preemption or a lost node, SLURM starts the same job again, which resumes."""
    training = requeued
    training.wanted = (warned.checkout.results / ENCODER / "model.safetensors").read_bytes()
    assert "Trying to restart" not in training.finish()
    assert "Restarts=1" in run("scontrol", "show", "job", training.job)
