"""workflow/launch: which command a number of GPUs and nodes becomes."""

import fcntl
import os
import socket
import subprocess
from pathlib import Path

import pytest

from cdmae.plan import machine

LAUNCH = Path(__file__).resolve().parents[2] / "workflow/launch"
STANDS = {
    "python": 'echo "python $* cards=${CUDA_VISIBLE_DEVICES-unset}"',
    "torchrun": 'echo "torchrun $* cards=${CUDA_VISIBLE_DEVICES-unset} parent=${CDMAE_PARENT-unset}"; trap -p USR1',
    "nvidia-smi": "seq 0 3",
    # What a step on every node runs, one node after the other.
    "srun": 'all="$*"; echo "srun ${all%%bash*}"; while [ "$1" != bash ]; do shift; done; for SLURM_NODEID in 0 1; do'
    ' export SLURM_NODEID; "$@"; done',
    "hostname": "echo head",
}


@pytest.fixture
def locks(tmp_path, monkeypatch):
    """The folder of the user's own in which cards are locked."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home/.cache/cdmae"


@pytest.fixture
def launch(locks, programs, monkeypatch):
    """A function that runs it among stand-ins for what it calls; its output in lines, and its words
    on an error.
    """
    programs(STANDS)
    monkeypatch.setenv("CDMAE_PARENT", "7")
    for name in ("SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES", "CDMAE_PROGRAMS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments, status=0):
        found = subprocess.run([LAUNCH, *map(str, arguments)], capture_output=True, text=True)
        assert found.returncode == status, found.stderr
        printed = found.stdout.replace(f"{LAUNCH.parent}/", "")
        return found.stderr.strip() if status else printed.splitlines()

    return run


def test_none_one_and_several_gpus_are_reserved_or_those_that_the_cluster_chose(
    launch, monkeypatch
):
    assert launch("--gpus", 0, "s.py", "--name", "a b") == ["python s.py --name a b cards="]
    assert launch("s.py") == ["python s.py cards=unset"]
    one = launch("--gpus", 1, "s.py")
    assert one == launch("--nodes", 1, "--gpus", 1, "s.py") == ["python s.py cards=0"]
    (line,) = launch("--gpus", 3, "s.py", "--name", "x")[:1]
    assert line == "torchrun --standalone --nproc-per-node 3 -- s.py --name x cards=0,1,2 parent=7"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert launch("--gpus", 1, "s.py") == ["python s.py cards=5"]


def test_torchrun_leaves_the_options_of_a_script_to_it():
    """It would read `--start` as an abbreviation of its own options."""
    from torch.distributed.run import get_args_parser

    found = get_args_parser().parse_args(
        ["--standalone", "--nproc-per-node", "3", "--", "s.py", "--start", "{}"]
    )
    assert [found.training_script, *found.training_script_args] == ["s.py", "--start", "{}"]


def test_jobs_that_run_at_once_take_different_cards(launch, locks, monkeypatch):
    """Of all of them, and of those that the user leaves them."""
    locks.mkdir(parents=True)
    with open(locks / f"gpu-{socket.gethostname()}-1.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert launch("--gpus", 2, "s.py")[0].endswith("cards=0,2 parent=7")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,3")
        assert launch("--gpus", 1, "s.py") == ["python s.py cards=3"]
        assert launch("--gpus", 2, "s.py")[0].endswith(
            "cards=1,3 parent=7"
        )  # another one's card 1, or it would not be ours


@pytest.mark.parametrize(
    "kind", ["home is a file", "cache is a file", "folders", "no home", "unset"]
)
def test_cards_whose_locks_cannot_be_had_are_taken_as_they_were_given(
    launch, locks, monkeypatch, kind
):
    home = locks.parents[1]
    if kind == "home is a file":
        home.write_text("")
    elif kind == "cache is a file":
        home.mkdir()
        locks.parent.write_text("")
    elif kind == "folders":
        for card in range(4):
            (locks / f"gpu-{socket.gethostname()}-{card}.lock").mkdir(parents=True)
    elif kind == "no home":
        monkeypatch.setenv("HOME", "/proc/home")  # where not even root can make one
    else:
        monkeypatch.delenv("HOME")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert launch("--gpus", 1, "s.py") == ["python s.py cards=2,3"]
    assert launch("--gpus", 2, "s.py")[0].endswith("cards=2,3 parent=7")


def test_a_lock_of_a_card_that_is_a_link_empties_no_file(launch, locks, tmp_path):
    locks.mkdir(parents=True)
    (tmp_path / "mine.txt").write_text("precious")
    (locks / f"gpu-{socket.gethostname()}-0.lock").symlink_to(tmp_path / "mine.txt")
    assert launch("--gpus", 1, "s.py") == ["python s.py cards=0"]
    assert (tmp_path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize(
    "answer", ["exit 127", "echo NVIDIA-SMI has failed; exit 9"], ids=["missing", "failing"]
)
def test_cards_are_kept_where_nvidia_smi_knows_none(launch, programs, answer):
    """Nodes with cards of another maker, fake ones, and containers have no nvidia-smi, or one
    without a driver.
    """
    programs({"nvidia-smi": answer}, ["bash", "flock"], alone=True)
    assert launch("--gpus", 1, "s.py") == ["python s.py cards=unset"]
    assert launch("--gpus", 2, "s.py")[0].endswith("cards=unset parent=7")


@pytest.mark.parametrize(
    "chosen, expected", [(None, 4), ("", 0), ("-1", 0), ("2", 1), ("1,3", 2), ("0,1,2,3,4,5", 4)]
)
def test_as_many_jobs_run_as_cards_are_left_to_them(
    launch, programs, monkeypatch, chosen, expected
):
    """In Snakemake's own count, and in the plan's."""
    from snakemake.profiles import ProfileConfigFileParser

    programs({"nvidia-smi": 'for i in 0 1 2 3; do echo "GPU $i: NVIDIA H100 (UUID: GPU-$i)"; done'})
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    profile = LAUNCH.parent / "profiles/default/profile.yaml"
    with open(profile) as file:
        found = ProfileConfigFileParser().parse(file)
    assert found["resources"] == [f"gpu={expected}"]
    assert machine.here().gpus == expected


def test_several_nodes_get_a_torchrun_each(launch, monkeypatch):
    """The first is the master; no node waits for a parent that lives on another, and none dies of a
    warning.
    """
    monkeypatch.setenv("SLURM_JOB_ID", "10012345")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    said = launch("--nodes", 2, "--gpus", 4, "s.py", "--settings", '{"a": "b c"}')
    assert said[0].startswith("srun --nodes 2 --ntasks 2 --ntasks-per-node 1 ")
    where = "--nproc-per-node 2 --master-addr head --master-port 22345"
    for node, (line, trap) in enumerate(zip(said[1::2], said[2::2], strict=True)):
        assert line == (
            f"torchrun --nnodes 2 --node-rank {node} {where} "
            '-- s.py --settings {"a": "b c"} cards=0,1 parent=unset'
        )  # fmt: skip
        assert trap == "trap -- '' SIGUSR1"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "--nproc-per-node 1 " in launch("--nodes", 2, "--gpus", 0, "s.py")[1]


def test_nodes_that_cannot_be_had_are_refused(launch, monkeypatch):
    said = launch("--nodes", 2, "--gpus", 4, "s.py", status=1)
    assert said == "cdmae: 2 nodes are requested; allowed outside a SLURM job: 1"
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    said = launch("--nodes", 2, "--gpus", 3, "s.py", status=1)
    assert said == "cdmae: 3 GPUs cannot be divided among 2 nodes; allowed: a multiple of 2"


def test_jobs_read_nothing_from_the_terminal_and_libraries_report_no_names_of_models(programs):
    programs({"python": "cat; env"})
    environment = os.environ | {"CDMAE_PROGRAMS": ""}
    done = subprocess.run(
        [LAUNCH, "s.py"], input="y\n", env=environment, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] != "y"
    for name in ("DISABLE_SAFETENSORS_CONVERSION", "HF_HUB_DISABLE_TELEMETRY", "TQDM_DISABLE"):
        assert f"{name}=1" in lines
    assert f"PYTHONPATH={LAUNCH.parents[1]}" in lines
