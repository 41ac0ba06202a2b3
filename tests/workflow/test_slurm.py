"""Submitting through workflow/profiles/slurm, to a SLURM of two nodes that slurm.sh starts on this
machine.

A training that is warned before its time limit, or requeued, ends in the weights of one
that was left alone.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml

from tests.workflow.conftest import ROOT, Checkout, Training, wait_for

SCRIPT = Path(__file__).with_name("slurm.sh")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "unshare")

# Smoke with one encoder and one retriever on one collection: from pre-training on, a job of every
# kind that SLURM treats in its own way.
GONE = {
    "collections": ["scikit-learn", "networkx", "spans"],
    "encoders": ["none", "mae"],
    "stages": ["stage2", "stage3", "matching", "reranker"],
    "systems": [
        "none-stage1", "mae-stage1", "cdmae-stage2", "cdmae-stage3", "matcher", "cdmae-reranker", "fused",
    ],
}  # fmt: skip
MEASURES = "results/smoke/measures/cdmae-stage1.tsv"


def tiny() -> str:
    values = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    for section, names in GONE.items():
        values[section] = values.get(section, {}) | dict.fromkeys(names)
    values["training"] |= {"epochs": 4}
    values["seed"] = 42
    collections = {"pydocs": ["dev"], "scikit-learn": None, "networkx": None}
    values["evaluation"] = {"collections": collections, "baseline": "bm25"}
    return yaml.safe_dump(values)


# What a user of two-node pre-training writes into the profile.
NODES = ("nodes=2", "gpu=2", "gres=gpu:1", "tasks=2", "tasks_per_gpu=0", "mpi=srun")
RESOURCES = [f"pretrain:{each}" for each in NODES]
PROFILE = (
    "--workflow-profile", "workflow/profiles/slurm", "--jobs", "2", "--latency-wait", "20",
    "--slurm-init-seconds-before-status-checks", "1",
)  # fmt: skip
# The executor asks for the jobs after 1 s, 11 s more, 21 s more and so on; here, every second.
OFTEN = """\
  - |
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
    RemoteExecutor.next_seconds_between_status_checks = property(lambda _: 1, lambda *_: None)
"""
FIRST = "  - import subprocess\n"

TWIN = """
import sys
from pathlib import Path
from cdmae.training import state
state.opened(Path(sys.argv[1]), "twin").__enter__()
"""


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
        subprocess.Popen([SCRIPT, "hold", folder], text=True, **pipes) as held,
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


@pytest.fixture(scope="module")
def ran(cluster, whole, tmp_path_factory):
    """A run from pre-training to measures, every job a job of SLURM and none interrupted."""
    checkout = whole.copy(tmp_path_factory.mktemp("slurm") / "checkout")
    for made in ("encoders", "trained", "vectors", "runs/cdmae-stage1", "measures"):
        shutil.rmtree(checkout.results / made)
    (checkout.folder / "tiny.yaml").write_text(tiny())
    checkout.edit(f"{PROFILE[1]}/profile.yaml", FIRST, OFTEN + FIRST)
    checkout.said = submit(checkout, MEASURES).communicate()[0]
    return checkout


SUBMITTED: list[subprocess.Popen] = []


def submit(checkout: Checkout, target: str, **environment: str) -> subprocess.Popen:
    words = (target, "--configfile", "tiny.yaml", *PROFILE, "--set-resources", *RESOURCES)
    SUBMITTED.append(checkout.start(*words, **environment))
    return SUBMITTED[-1]


class Submitted(Training):
    """A training of that run, to be made once more and interrupted in the middle."""

    def __init__(self, ran: Checkout, folder: Path, rule: str, name: str, output: str):
        copied = Checkout.of(ran.folder, folder, os.listdir(ran.folder))
        super().__init__(copied, rule, name, output)
        self.process = submit(copied, self.target, CDMAE_SAVE_SECONDS="0")
        wait_for(lambda: self.steps() or self.process.poll() is not None, seconds=600)
        for trainer in self.trainers():
            trainer.suspend()
        assert self.process.poll() is None, self.process.communicate()[0]
        self.job = run("squeue", "--noheader", "--format", "%i", "--states", "running")

    def trainers(self) -> list[psutil.Process]:
        """The processes that train, whatever node they are on."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it has ended meanwhile
                words = process.cmdline()
                is_script = any(word.endswith(".call.py") for word in words[:3])
                if is_script and Path(process.cwd()) == self.checkout.folder:
                    found.append(process)
        return found

    def finish(self) -> str:
        """Wait for the end; what all attempts said."""
        said = self.process.communicate()[0]
        assert self.process.returncode == 0, said
        assert "resumes from step" in self.log.read_text()
        assert self.weights() == self.wanted, "resumed, but not to the same bits"
        return said


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def failed_jobs(checkout: Checkout) -> str:
    """What the jobs that SLURM counts as failed have said; the logs of the others are deleted."""
    logs = (checkout.folder / ".snakemake/slurm_logs").rglob("*.log")
    return "".join(path.read_text() for path in logs)


def test_the_workflow_runs_with_a_stage_on_two_nodes(ran):
    """Two torchruns train together, on nodes with names and process ids of their own."""
    assert (ran.folder / MEASURES).exists(), ran.said + failed_jobs(ran)
    assert "Trying to restart" not in ran.said
    assert "account" not in ran.said, "the executor warns of what the profile leaves out on purpose"
    about = json.loads((ran.results / "encoders/cdmae/about.json").read_text())
    assert about["processes"] == 2
    assert not list((ran.results / "state").rglob("step-*.pt"))


def test_requeued_on_two_nodes(ran, tmp_path):
    """As after a preemption or a lost node, SLURM starts the same job again, which resumes."""
    training = Submitted(ran, tmp_path / "checkout", "pretrain", "cdmae", "encoders/cdmae")
    (state,) = training.states.iterdir()
    other_node = ("srun", "--nodelist", "n2", "--mem", "100", "--chdir", training.checkout.folder)
    twin = [*other_node, sys.executable, "-c", TWIN, state]
    refused = subprocess.run(twin, capture_output=True, text=True)
    owner = rf"by process \d+ on n1, job {training.job};"
    assert re.search(f"twin is being trained already, {owner}", refused.stderr)
    run("scontrol", "requeue", training.job)
    assert "Trying to restart" not in training.finish()
    assert "Restarts=1" in run("scontrol", "show", "job", training.job)


def test_warned_before_the_time_limit(ran, tmp_path):
    """By the profile's SIGUSR1, the trainer saves and ends; the retry resumes."""
    name = "cdmae-stage1"
    training = Submitted(ran, tmp_path / "checkout", "train", name, f"trained/{name}")
    # less than the five minutes of the profile
    run("scontrol", "update", f"JobId={training.job}", "EndTime=now+3minutes")
    training.finish()
    assert f"SIGUSR1: {name} is saved at step" in failed_jobs(training.checkout)
