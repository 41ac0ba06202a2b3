"""Run a function as a job of Snakemake: the adapter of every script in ``workflow/scripts``.

A script imports one function and passes it to `run` with the object ``snakemake`` of its rule. The
function's parameters are filled by name from the rule's inputs, wildcards and parameters.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import hashlib
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from cdmae import fields
from cdmae.cli import INTERRUPTED, ending
from cdmae.errors import InputError, Interrupted
from cdmae.files import digest
from cdmae.tokens.corpus import Tokens, read_tokens

# the process id of the workflow engine; the job stops itself when that process has ended
PARENT = "CDMAE_PARENT"
WORKER = "TORCHELASTIC_RUN_ID"  # torchrun sets it in the processes that it starts
STATE = "CDMAE_STATE"  # the folder of the training's state, for these processes
# A step of srun per node. torchrun must ignore USR1, a warning for the trainers, because tasks of
# srun start with the default action, which ends the process.
ON_EVERY_NODE = """trap "" USR1
exec "$0" -m torch.distributed.run --nnodes "$1" --node-rank "$SLURM_NODEID" \
    --nproc-per-node "$2" --master-addr "$3" --master-port "$4" "$5"
"""

_work: list[float] = []  # the seconds of this job's work, without its start
_locks: list[FileLock] = []  # of this job's GPUs; the system releases them when the process ends


def run(function: Callable[..., Any] | str, job: Any) -> typing.NoReturn:
    """Call a function with the inputs, output, parameters and threads of a job; end the process.

    function: itself, or its dotted name. The job imports a name after it has opened its log, so an
    error or a signal during the import is in the log.
    job: the object ``snakemake`` of a script. Everything that the job prints goes to its log and to
    the terminal. With several GPUs, the script runs once per GPU (torchrun); on several nodes, by
    srun. A function that returns a number returns the seconds of its work that the report counts.
    """
    is_worker = WORKER in os.environ
    if not is_worker:
        _print_to(job.log[0])

    def work() -> None:
        signal.signal(signal.SIGTERM, _stop)
        end_with_parent()
        gpus, nodes = job.resources.get("gpu"), job.resources.get("nodes", 1)
        called = _imported(function) if isinstance(function, str) else function
        values = arguments(called, job)
        began = time.monotonic()
        if not is_worker:
            os.environ[STATE] = str(values.get("state", ""))
            os.environ["RAYON_NUM_THREADS"] = str(job.threads)  # of tokenizers
        if nodes > 1 and not is_worker:
            _start_on_nodes(nodes, gpus)
        if gpus is not None and not is_worker:
            _choose_gpus(gpus)
            if gpus > 1:
                _start_on_gpus(gpus)
                _work.append(time.monotonic() - began)  # with the start of the processes
                return
        began = time.monotonic()
        seconds = called(**values)
        _work.append(time.monotonic() - began if seconds is None else seconds)

    ending(work)


def _imported(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)


def arguments(function: Callable[..., Any], job: Any) -> dict[str, Any]:
    """Return the arguments of a function by name.

    A parameter takes the value of that name in ``params.settings``, in the rule's named inputs and
    outputs, in its other params, or of a wildcard; ``output``, ``threads`` and ``memory`` in bytes
    are the rule's. The path of several files is their folder, and of none is None. `Tokens` are
    read from their folder, and settings become the annotated class. The fields of the class of a
    parameter `files` are filled in the same way. Settings with ``targets`` add the arguments of
    `on_targets`.
    """
    params = dict(job.params.items())
    settings = params.get("settings", {})
    known = dict(job.wildcards.items()) | params
    known |= {"output": list(job.output), "threads": job.threads}
    known |= {"memory": job.resources.get("mem_mb", 0) * 1_000_000}
    known |= dict(job.output.items()) | dict(job.input.items()) | settings
    if "targets" in settings:
        known |= on_targets(job)
    if "state" in known:
        known["state"] = _state(job)
    hints = hints_of(function)
    if dataclasses.is_dataclass(hints.get("files")):
        of = hints_of(hints["files"])
        known["files"] = {key: value_of(of[key], known[key], key) for key in of if key in known}
    names = [name for name in inspect.signature(function).parameters if name in known]
    return {name: value_of(hints[name], known[name], name) for name in names}


def value_of(hint: Any, value: Any, name: str) -> Any:
    """Turn a value of Snakemake's object into the type of a parameter."""
    if hint == list[Path]:
        return [Path(path) for path in _all(value)]
    if hint in (Path, Tokens):
        paths = [value] if isinstance(value, str | Path) else list(value)
        path = Path(paths[0]).parent if len(paths) > 1 else Path(paths[0]) if paths else None
        return read_tokens(path) if hint is Tokens else path
    # a class of settings, or a union of classes
    is_settings = dataclasses.is_dataclass(hint) or typing.get_origin(hint) is typing.Annotated
    return fields.parse(hint, value, name) if is_settings else value


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's parameters; ``X | None`` counts as ``X``."""
    # the annotation's extras name the setting that discriminates between the classes of a union
    hints = typing.get_type_hints(function, include_extras=True)
    return {
        key: hint.__args__[0] if isinstance(hint, types.UnionType) else hint
        for key, hint in hints.items()
    }


def on_targets(job: Any) -> dict[str, Any]:
    """Return the arguments of a function that searches or measures splits of collections.

    ``targets`` has a `Target` for each pair of a collection and a split in ``settings.targets``,
    with the runs of every system in the input ``runs``. ``folders`` has the distinct collections.
    """
    from cdmae.runs import Target  # with pyarrow, which other jobs need not import

    read = [Path(file).parent for file in job.input.get("collections", [])]
    folders = {folder.name: folder for folder in read}
    systems = _all(job.input.get("runs", []))
    output = job.output.get("runs")
    if output:
        Path(output).mkdir(exist_ok=True)
    targets = []
    for name, split in job.params.settings["targets"]:
        file = f"{name}.{split}.parquet"
        runs = tuple(Path(system, file) for system in systems)
        written = Path(output, file) if output else None
        targets.append(Target(name, split, folders.get(name), runs, written))
    return {"folders": list(folders.values()), "targets": targets}


def _all(paths: Any) -> list[str]:
    """List the paths of an input, which is a text if it has one path."""
    return [paths] if isinstance(paths, str) else list(paths)


def _state(job: Any) -> Path:
    """Return the folder of a training's state, below ``params.state``.

    Its name is a hash of what the state is made from: settings, code and the content of the inputs.
    A training resumes only where all of them match, and returns to its state when a setting does.
    """
    if WORKER in os.environ:  # reading all inputs once is enough
        return Path(os.environ[STATE])
    made = [job.params.settings, job.params.code, [digest(path) for path in job.input]]
    name = hashlib.sha256(json.dumps(made).encode()).hexdigest()[:16]
    return Path(job.params.state, name)


# --- log, signals ---------------------------------------------------------------------------------


def _print_to(log: str) -> None:
    """Send the output of this process, and of those that it starts, to a log and the terminal."""
    # libraries print no progress bars, because jobs log progress as lines, and read no terminal
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # SLURM signals every process of a job: the last lines come after the signal
    survives = """trap "" INT TERM USR1; exec tee "$0" """
    tee = subprocess.Popen(["sh", "-c", survives, log], stdin=subprocess.PIPE, stdout=sys.stderr)
    for number in (1, 2):
        os.dup2(tee.stdin.fileno(), number)
    tee.stdin.close()
    sys.stdout, sys.stderr = (
        open(number, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        for number in (1, 2)
    )

    def close() -> None:
        """Wait for the last lines: the workflow reads the log when this process has ended."""
        sys.stdout.flush()
        for number in (1, 2):
            os.dup2(0, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            tee.wait(10)  # longer only if a child process survives this one
        if _work:
            with open(log, "a", encoding="utf-8") as file:  # cdmae.report.records reads it
                print(f"work {_work[0]:.3f} s", file=file)

    atexit.register(close)


def _stop(number: int, _frame: Any) -> None:
    """Unwind the stack, which removes half-written files; a second signal ends immediately."""
    signal.signal(number, signal.SIG_DFL)
    raise Interrupted("stopped by SIGTERM")


def end_with_parent() -> None:
    """Watch the process in ``CDMAE_PARENT``, if set, and send SIGTERM to this one when it ends.

    A killed workflow engine would otherwise leave its jobs running, and the next run would start
    the same jobs a second time.
    """
    value = os.environ.get(PARENT, "")
    if not value:
        return
    import psutil

    def watch() -> None:
        with contextlib.suppress(psutil.Error):  # raised as soon as the process does not exist
            parent = psutil.Process(int(value))
            while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
                time.sleep(1)
        message = f"the workflow (process {value}) has ended, so this job stops, too"
        print(message, file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent").start()


# --- GPUs and nodes -------------------------------------------------------------------------------


def _choose_gpus(number: int) -> None:
    """Choose GPUs that no other job on this machine uses, and lock them until this process ends.

    If too few are free, or locks or nvidia-smi are missing, the GPUs that the user or the cluster
    allows are kept: on a cluster, GPU 0 of one job may be another card than GPU 0 of the next.
    """
    if not number:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        return
    cards = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
        cards = cards or subprocess.run(command, capture_output=True, text=True, check=True).stdout
    taken: list[str] = []
    for card in cards.replace(",", " ").split():
        name = f"cdmae-{os.getuid()}-gpu-{card.replace('/', '_')}.lock"
        lock = FileLock(Path(tempfile.gettempdir(), name), timeout=0, fallback_to_soft=False)
        with contextlib.suppress(OSError, Timeout):
            if len(taken) < number:
                lock.acquire()
                _locks.append(lock)
                taken.append(card)
    if len(taken) == number:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)


def _start_on_gpus(number: int) -> None:
    """Run this script in a process per GPU of this machine."""
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    options = torchrun.parse_args(["--standalone", "--nproc-per-node", str(number), sys.argv[0]])
    try:
        torchrun.run(options)
    except ChildFailedError as failed:  # the process itself has printed the reason
        sys.exit(max(1, next(iter(failed.failures.values())).exitcode))
    except SignalException:
        sys.exit(INTERRUPTED)


def _start_on_nodes(nodes: int, gpus: int) -> None:
    """Run this script in a process per GPU of several nodes, from the first node of a SLURM job."""
    if "SLURM_JOB_ID" not in os.environ:
        raise InputError(f"{nodes} nodes are requested; expected 1 outside a SLURM job")
    if gpus % nodes:
        raise InputError(
            f"{gpus} GPUs cannot be divided among {nodes} nodes; expected a multiple of {nodes}"
        )
    if not gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # a process of this node only; srun ends its tasks on all nodes when the job ends
    os.environ.pop(PARENT, None)
    port = 20000 + int(os.environ["SLURM_JOB_ID"]) % 10000
    words = [nodes, max(1, gpus // nodes), socket.gethostname(), port, sys.argv[0]]
    step = ["--nodes", nodes, "--ntasks", nodes, "--ntasks-per-node", 1]
    step += ["--mem", 0, "--cpu-bind", "none", "--kill-on-bad-exit"]
    command = ["srun", *step, "bash", "-c", ON_EVERY_NODE, sys.executable, *words]
    os.execvp("srun", list(map(str, command)))
