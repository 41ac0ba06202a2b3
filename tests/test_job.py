"""The adapter of the scripts: arguments, log, end, GPUs, nodes, and states of trainings."""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest
from annotated_types import Ge
from small_collections import write_files
from snakemake.iocontainers import Namedlist

from cdmae.fields import Whole, settings
from cdmae.job import arguments, on_targets
from cdmae.runs import Target

ROOT = Path(__file__).resolve().parent.parent
# A job as Snakemake gives it to a script, with a file beside it as its input.
JOB = """
import os, sys, time
from pathlib import Path
from types import SimpleNamespace
from snakemake.iocontainers import Namedlist
from cdmae.errors import InputError
from cdmae.job import run

def job(**resources):
    named = lambda **values: Namedlist(fromdict=values)
    return SimpleNamespace(
        input=named(text="input"), output=Namedlist(["output"]), log=Namedlist(["a.log"]), threads=2,
        params=named(settings={}, code={}),
        wildcards=named(system="mae"), resources=named(**resources),
    )
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A function that starts a script in a folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").write_text("one")
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "CDMAE_PARENT"):
        monkeypatch.delenv(name, raising=False)

    def begin(code, **environment):
        script = tmp_path / "script.py"
        script.write_text(JOB + textwrap.dedent(code))
        place = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.PIPE}
        return subprocess.Popen([sys.executable, script], env=place, text=True, **pipes)

    return begin


@pytest.fixture
def ended(start, tmp_path):
    """A function that runs a script to its end: its status, and the lines of its log."""

    def run(code, **environment):
        process = start(code, **environment)
        said = process.communicate("typed\n", timeout=100)[1]
        shown = (tmp_path / "a.log").read_text().partition("work ")[0]
        assert said == shown, "the terminal shows what the log has, but for the time of the work"
        return process.returncode, shown.splitlines()

    return run


@settings
class Recipe:
    window: Annotated[Whole, Ge(2)] = 4
    """The number of words."""


def takes(
    *, name: str, recipe: Recipe, model: Path | None, files: list[Path], folder: Path, seed: int, output: Path,
    threads: int, other: float = 0.5,
):  # fmt: skip
    raise AssertionError


def named(**values):
    return Namedlist(fromdict=values)


def job(**changed):
    """A job as Snakemake passes it to a script."""
    values = {"input": named(), "output": Namedlist(["out"]), "threads": 3, "resources": {}}
    values |= {"wildcards": named(), "params": named(settings={}, code={})}
    return SimpleNamespace(**values | changed)


def test_arguments_are_the_inputs_settings_wildcards_and_threads_of_their_names():
    given = job(
        input=named(files="a", model=Namedlist(), folder=["f/a", "f/b"]),
        wildcards=named(name="n"),
        params=named(settings={"recipe": {"window": 3}, "seed": 7}, code={}),
    )
    assert arguments(takes, given) == {
        "name": "n", "recipe": Recipe(window=3), "model": None, "files": [Path("a")],
        "folder": Path("f"), "seed": 7, "threads": 3, "output": Path("out"),
    }  # fmt: skip


def test_runs_are_listed_target_by_target(tmp_path):
    targets = [["docs", "dev"], ["docs", "test"], ["more", "test"]]
    read = named(
        collections=["c/docs/a", "c/docs/b", "c/more/a"], runs=["r/a/evaluated", "r/b/evaluated"]
    )
    written = named(runs=str(tmp_path / "evaluated"))
    found = on_targets(job(input=read, output=written, params=named(settings={"targets": targets})))
    assert found["folders"] == [Path("c/docs"), Path("c/more")]
    files = ["docs.dev.parquet", "docs.test.parquet", "more.test.parquet"]
    for (name, split), file, target in zip(targets, files, found["targets"], strict=True):
        runs = (Path("r/a/evaluated", file), Path("r/b/evaluated", file))
        written = tmp_path / "evaluated" / file
        assert target == Target(name, split, Path("c", name), runs, written)


def test_a_state_is_named_by_settings_code_and_the_content_of_the_inputs(tmp_path):
    def work(state: Path): ...

    def name(content="one", settings=1, code=1):
        (tmp_path / "input").write_text(content)
        values = {"settings": {"a": settings}, "code": {"module": code}, "state": "state"}
        read = named(text=str(tmp_path / "input"))
        return arguments(work, job(input=read, params=named(**values)))["state"]

    names = [name(), name("two"), name(settings=2), name(code=2)]
    assert len(set(names)) == 4 and {each.parent for each in names} == {Path("state")}
    assert name() == names[0], "made again in the same bits"


def test_all_that_a_job_and_its_children_print_is_in_the_log_and_nothing_is_read(ended):
    code = """
    def work(system: str):
        print("of", system, sys.stdin.read())
        os.system("echo from a child")
    run(work, job())
    """
    assert ended(code) == (0, ["of mae ", "from a child"])


def test_a_mistake_is_the_last_sentence_and_a_fault_has_its_traceback(ended):
    code = """
    def work():
        raise InputError("window is 1; expected from 2")
    run(work, job())
    """
    assert ended(code) == (1, ["cdmae: window is 1; expected from 2"])
    status, lines = ended(code.replace("InputError", "KeyError"))
    assert status == 1 and lines[0].startswith("Traceback") and lines[-1].startswith("KeyError")


WAITS = """
def work():
    try:
        Path("ready").touch()
        time.sleep(60)
    except Exception:
        print("swallowed")
    finally:
        print("tidied up")
run(work, job())
"""


def test_a_job_ends_itself_when_the_workflow_has_gone_whatever_is_caught(start, tmp_path):
    """By SIGTERM; transformers catches every `Exception` of its modules."""
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = start(WAITS, CDMAE_PARENT=str(parent.pid))
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    said = process.communicate(timeout=20)[1]
    assert process.returncode == 75 and "swallowed" not in said
    assert said.endswith("tidied up\ncdmae: stopped by SIGTERM\n")


def test_the_last_lines_of_a_job_come_after_a_signal_to_all_of_its_processes(start, tmp_path):
    """As scancel sends it."""
    process = start(WAITS)
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for each in (*map(int, children), process.pid):
        os.kill(each, signal.SIGTERM)
    assert process.communicate(timeout=20)[1].endswith("tidied up\ncdmae: stopped by SIGTERM\n")
    assert process.returncode == 75 and children


def test_a_job_that_still_imports_is_stopped_with_one_sentence(start, tmp_path):
    write_files(tmp_path, {"slow.py": "from pathlib import Path\nimport time\n"
                                      "Path('ready').touch(); time.sleep(60)\n"})  # fmt: skip
    # processes that a shell starts in the background ignore the signal
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    process = start(f"{heeds}\nrun('slow.work', job())")
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    assert said == "cdmae: stopped from the keyboard; finished work is kept\n"


RANKS = """
def work():
    os.write(1, f"rank {{os.environ['RANK']}} of {{os.environ['WORLD_SIZE']}}\\n".encode())
    Path(f"rank-{{os.environ['RANK']}}").touch()
    {fault}
run(work, job(gpu=2))
"""


def test_several_gpus_have_a_process_each_whose_mistake_is_told(ended):
    # otherwise the other process might be stopped before it has started
    fault = """if os.environ['RANK'] == '1':
        while not Path("rank-0").exists():
            time.sleep(0.05)
        raise InputError('no room')"""
    status, lines = ended(RANKS.format(fault=fault))
    assert status == 1 and {"rank 0 of 2", "rank 1 of 2", "cdmae: no room"} <= set(lines)
    assert not [line for line in lines if line.startswith("Traceback")]


CARDS = """
def work():
    print("cards", os.environ.get("CUDA_VISIBLE_DEVICES"))
run(work, job({resources}))
"""


def test_jobs_that_run_at_once_take_different_cards(ended, tmp_path, programs):
    """Of all of them, and of those that the user leaves them; a CPU's job sees none."""
    programs({"nvidia-smi": "seq 0 3"})
    one = CARDS.format(resources="gpu=1")
    assert ended(CARDS.format(resources="gpu=0"))[1] == ["cards "]
    with open(tmp_path / f"cdmae-{os.getuid()}-gpu-0.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert ended(one)[1] == ["cards 1"]
        assert ended(one, CUDA_VISIBLE_DEVICES="0,3")[1] == ["cards 3"]
    programs({"nvidia-smi": "exit 9"})
    assert ended(one)[1] == ["cards None"], "cards of another maker, or a container"


SRUN = """all="$*"; echo "srun ${all%%bash*}"; while [ "$1" != bash ]; do shift; done
for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@"; done"""
PYTHON = 'echo "python $* parent=${CDMAE_PARENT-unset}"; trap -p USR1'


def test_several_nodes_get_a_torchrun_each(ended, tmp_path, programs):
    """The first is the master; no node waits for a parent that lives on another, and none dies of a
    warning.
    """
    folder = programs({"srun": SRUN, "python": PYTHON})
    code = f"""
    import socket
    socket.gethostname = lambda: "head"
    sys.executable = "{folder}/python"
    run(print, job(gpu=4, nodes=2))
    """
    place = {"SLURM_JOB_ID": "10012345", "CDMAE_PARENT": str(os.getpid())}
    status, lines = ended(code, **place)
    assert status == 0 and lines[0].startswith("srun --nodes 2 --ntasks 2 --ntasks-per-node 1 ")
    for node, (line, trap) in enumerate(zip(lines[1::2], lines[2::2], strict=True)):
        assert line == (
            f"python -m torch.distributed.run --nnodes 2 --node-rank {node} --nproc-per-node 2 "
            f"--master-addr head --master-port 22345 {tmp_path}/script.py parent=unset"
        )
        assert trap == "trap -- '' SIGUSR1"
    assert ended(code)[1][0].startswith("cdmae: 2 nodes")
    assert ended(code.replace("gpu=4", "gpu=3"), **place)[1][0].startswith("cdmae: 3 GPUs")
