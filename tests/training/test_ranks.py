"""Several processes: they find each other, and a signal to one stops all.

That they learn the same as one is tested with the gradients of `finetuning/` and the objectives of
`pretraining/`.
"""

import contextlib
import multiprocessing
import os
import socket
import threading

import pytest
import torch
from tiny_training import TinyTask, together

from cdmae.config.stages import Dense
from cdmae.errors import Interrupted
from cdmae.training import loop, ranks, setup, state

SIZE = 3  # processes


def join(rank, port, told):
    place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update(place)
    with ranks.joined(torch.device("cpu")) as group:
        sums = torch.tensor([1.0, group.rank])
        group.add_up([sums])
        group.wait()
        told.put((group.rank, group.size, group.first, group.any(not group.first), sums.tolist()))


def test_processes_of_torchrun_find_each_other():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = str(any_port.getsockname()[1])
    forked = multiprocessing.get_context("fork")
    told = forked.Queue()
    for rank in range(2):
        forked.Process(target=join, args=(rank, port, told), daemon=True).start()
    found = sorted(told.get(timeout=120) for _ in range(2))
    assert found == [(0, 2, True, True, [2.0, 1.0]), (1, 2, False, True, [2.0, 1.0])]


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
