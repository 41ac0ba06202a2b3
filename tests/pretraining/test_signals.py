"""A signal at any moment of a training, also after its last step, loses no work and no bit.

The test does what Snakemake does with a job: it deletes the output if the job fails, and starts the
job again.
"""

import multiprocessing
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import tiny_pretraining
from snakemake.iocontainers import Namedlist

from cdmae.job import run

TIMES = 20
STEPS = 8
SETTINGS = replace(tiny_pretraining.SETTINGS, steps=STEPS)
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGKILL)
FORKED = multiprocessing.get_context("forkserver")  # torch is imported once for all jobs


def job(inputs, folder):
    """Pre-train as a job of the workflow does, with the log in a file."""
    os.environ["CDMAE_SAVE_SECONDS"] = "0"
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # as the workflow's processes do
    none = Namedlist()
    script = SimpleNamespace(
        input=none, output=Namedlist(["encoder"]), params=none, wildcards=none, resources=none,
        log=[str(folder / "log")], threads=1,
    )  # fmt: skip
    run(lambda: tiny_pretraining.run(inputs, folder, SETTINGS), script)


def begin(inputs, folder):
    process = FORKED.Process(target=job, args=(inputs, folder))
    process.start()
    return process


def files(folder):
    """The weights and tables of an encoder."""
    paths = [*folder.rglob("*.safetensors"), *folder.rglob("*.tsv")]
    return {path.relative_to(folder): path.read_bytes() for path in paths}


def saved(folder):
    """The step of the newest state; 0 without a state."""
    names = [path.name for path in (folder / "state").glob("step-*.pt")]
    return int(max(names, default="step-0.").split(".")[0].removeprefix("step-"))


@pytest.mark.workflow
def test_a_signal_at_any_moment_loses_nothing(inputs, tmp_path):
    FORKED.set_forkserver_preload(["tiny_pretraining", "transformers.models.bert.modeling_bert"])
    (tmp_path / "whole").mkdir()
    whole = begin(inputs, tmp_path / "whole")
    whole.join()
    assert whole.exitcode == 0, (tmp_path / "whole/log").read_text()
    expected = files(tmp_path / "whole/encoder")
    drawn, ends = random.Random(1), {"done": 0, "stopped": 0, "lost its output": 0}
    for number in range(TIMES):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = begin(inputs, folder)
        if number % 2:  # the moment in which most was lost
            while process.is_alive() and not (folder / "encoder").exists():
                time.sleep(0.0005)
            time.sleep(drawn.uniform(0, 0.02))
        else:
            step = drawn.randrange(1, STEPS)
            while process.is_alive() and saved(folder) < step:
                time.sleep(0.0005)
        if process.is_alive():
            os.kill(process.pid, drawn.choice(SIGNALS))
        process.join()
        if process.exitcode == 0:
            ends["done"] += 1
        else:
            output = folder / "encoder"
            ends["lost its output" if output.exists() else "stopped"] += 1
            step = saved(folder)
            assert step == STEPS or not output.exists()
            shutil.rmtree(output, ignore_errors=True)
            process = begin(inputs, folder)
            process.join()
            log = (folder / "log").read_text()
            assert process.exitcode == 0, log
            assert f"x resumes from step {step}" in log or not step
        assert files(folder / "encoder") == expected
    assert ends["stopped"] + ends["lost its output"] > TIMES / 8, ends
