"""Several processes learn the same as one; `pretraining/test_pretrain.py` has the objectives.

The input of a step (order, negatives, teacher's scores), its loss and its gradient do not depend on
how many processes share it. Without dropout, whose draws are each process's own, and in float64,
where no rounding hides a mistake. Threads play the processes, except in the first test.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from tiny_training import TinyTask, encoder, gradients, stage, together, untrained, write_teacher

from cdmae.config.heads import Dense
from cdmae.errors import Interrupted
from cdmae.finetuning import reranker, retriever
from cdmae.finetuning.task import Data, Inputs
from cdmae.models import checkpoint
from cdmae.training import loop, ranks, setup, state
from cdmae.training.loop import add_up

ROOT = Path(__file__).resolve().parents[2]
SIZE = 3  # processes
LOADING = threading.Lock()  # transformers does not load in several threads

JOIN = """
import sys, torch
from cdmae.training import ranks
with ranks.joined(torch.device("cpu")) as group:
    sums = torch.tensor([1.0, group.rank])
    group.add_up([sums])
    group.wait()
    print(group.rank, group.size, group.first, group.any(not group.first), sums.tolist())
"""


def test_processes_of_torchrun_find_each_other():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = str(any_port.getsockname()[1])
    group = []
    for rank in range(2):
        place = {"RANK": str(rank), "WORLD_SIZE": "2"}
        place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, "-c", JOIN]
        group.append(
            subprocess.Popen(command, cwd=ROOT, env=os.environ | place, stdout=subprocess.PIPE)
        )
    said = [process.communicate(timeout=120)[0].decode().strip() for process in group]
    assert said == ["0 2 True True [2.0, 1.0]", "1 2 False True [2.0, 1.0]"]


def test_a_signal_to_one_process_stops_all_of_them(tmp_path, monkeypatch):
    """At the next step at which they ask each other: preemption may leave a few seconds."""
    stops = threading.local()

    @contextlib.contextmanager
    def stopping():
        stops.mine = []
        yield stops.mine

    monkeypatch.setattr(setup, "stopping", stopping)

    def train(group, name, kill=-1):
        network = torch.nn.Linear(3, 1, bias=False)
        torch.nn.init.ones_(network.weight)
        seen = []

        class Stopped(TinyTask):
            columns = ("step", "loss")

            def learn(self, batch, step, scaler):
                seen.append(step)
                loss = (network(torch.ones(3)) * (step + group.rank)).square().sum()
                loss.backward()
                if step == kill and group.rank == SIZE - 1:
                    stops.mine.append("SIGUSR1")
                return {"loss": loss.detach(), "spread": torch.ones(())}

        plan = loop.Schedule(steps=12, warmup=2, last=12, interval=100)
        with state.opened(tmp_path / name, "x", group) as saved:
            loop.train(Stopped(network, Dense(collection="c", precision="fp32"), plan), saved)
        return network.weight.detach(), seen

    def work(group):
        whole, _ = train(group, "whole")
        with pytest.raises(Interrupted) as stop:
            train(group, "stopped", kill=3)
        group.wait()
        again, seen = train(group, "stopped")
        return str(stop.value), seen, whole, again

    found = together(SIZE, work)
    for rank, (message, seen, whole, again) in enumerate(found):
        cause = "SIGUSR1" if rank == SIZE - 1 else "a signal"
        assert message == f"{cause}: x is saved at step 5; run it again to resume"
        assert seen == list(range(5, 12))
        assert torch.equal(whole, found[0][2]) and torch.equal(again, whole)


def fine_tuned(kind, *inputs, **changed):
    """The second step of a stage: its input, its numbers and its gradient, in float64."""
    recipe = stage(kind, **changed)

    def train(group, folders):
        files = Inputs(**folders["given"] | {name: folders[name] for name in inputs})
        with LOADING:
            model = checkpoint.start_model(
                folders["encoder"], recipe.kind, seed=3, **recipe.model()
            )
            data = Data.read(files, recipe, model, seed=1)
            kinds = {"reranker": reranker, "retriever": retriever}
            task = kinds[recipe.kind].set_up("tiny", model, data, recipe, files, 1, group)
        batch = next(task.batches(1))
        network = task.network.double()
        numbers = task.learn(batch, 1)
        add_up(network.parameters(), numbers, group)
        found = [getattr(batch, "sequences", None), batch.pairs]
        read = [each.values.tolist() for each in found if each is not None]
        read += [] if batch.teacher is None else batch.teacher.tolist()
        return read, numbers, gradients(network)

    return train


FLOPS = {"alpha": 0.3, "flops_warmup": 2.0}
TRAINERS = {
    "retriever": fine_tuned("retriever", "teacher", alpha=0.3),
    "reranker": fine_tuned("reranker", "teacher", chunk=4, alpha=1.0),
    "sparse": fine_tuned("sparse", "teacher", **FLOPS),
    "multi": fine_tuned("multi", "teacher", alpha=0.3),
    "unified": fine_tuned("unified", "teacher", **FLOPS),
    "with its teacher": fine_tuned("retriever", "joint_teacher", alpha=0.3),
}


@pytest.fixture(scope="module")
def folders(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    start = encoder(folder / "encoder", tiny.encoder, dropout=0.0)
    return {
        "given": tiny.inputs() | {"encoder": start},
        "encoder": start,
        "tokens": tiny.tokens,
        "teacher": write_teacher(folder / "teacher.parquet"),
        "joint_teacher": untrained(folder / "cross", start, stage("reranker")),
    }


@pytest.mark.parametrize("trainer", TRAINERS)
def test_input_loss_and_gradient_do_not_depend_on_the_processes(folders, trainer):
    """Queries and negatives are drawn by all processes alike."""
    train = TRAINERS[trainer]
    read, numbers, gradient = train(ranks.Ranks(), folders)
    group = together(SIZE, lambda process: train(process, folders))
    largest = max(float(each.abs().max()) for each in gradient.values())
    values = {name: value.item() for name, value in numbers.items()}
    for other_read, other_numbers, other in group:
        assert other_read == read
        others = {name: value.item() for name, value in other_numbers.items()}
        assert others == pytest.approx(values, rel=1e-9)
        assert other.keys() == gradient.keys()
        for name, value in gradient.items():
            torch.testing.assert_close(other[name], value, atol=1e-9 * largest, rtol=0)
            assert torch.equal(other[name], group[0][2][name]), "processes drift apart"
