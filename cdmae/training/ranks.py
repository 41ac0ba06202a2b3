"""The processes of one training: one per GPU, as torchrun starts them, or a single process.

Losses are normalised over the global batch before it is divided among the processes, so they only
ever exchange sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed

from cdmae.errors import InputError


@dataclass(frozen=True)
class Ranks:
    """The position, `rank`, of this process among the `size` processes of one training run."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")
    store: distributed.Store | None = None  # of torchrun, through which processes find each other

    @property
    def first(self) -> bool:
        """Return whether this process writes the shared files."""
        return self.rank == 0

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over the processes, all in one exchange."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        if self.size == 1:
            return flag
        total = torch.tensor(float(flag), device=self.device)
        self.add_up([total])
        return bool(total > 0)

    def begin_any(self, flag: bool) -> Callable[[], bool]:
        """Send a flag; return a function that waits for the processes' answer, as `any` gives it.

        The exchange is queued on the device like a step's other work. Waiting for it later does
        not wait for what is queued behind it.
        """
        total = torch.full((), float(flag), device=self.device)
        self.add_up([total])
        copied = total.to("cpu", non_blocking=True)
        if self.device.type != "cuda":
            return lambda: bool(copied > 0)
        done = torch.cuda.Event()
        done.record()

        def answer() -> bool:
            done.synchronize()
            return bool(copied > 0)

        return answer

    def wait_for_first(self, what: str) -> None:
        """Wait until the first process calls this, too, with the same name.

        Collectives give up after minutes, but reading a large collection may take longer.
        """
        if self.size == 1:
            return
        if self.first:
            self.store.set(what, "done")
        else:
            self.store.wait([what], timedelta(days=1))

    def wait_for_all(self, what: str) -> None:
        """Let the first process wait until every process has called this with the same name."""
        if self.size == 1:
            return
        names = [f"{what} {rank}" for rank in range(self.size)]
        self.store.set(names[self.rank], "done")
        if self.first:
            self.store.wait(names, timedelta(days=1))

    def check_batch(self, name: str, size: int) -> None:
        """Raise `InputError` if the global batch `name` is smaller than the number of processes."""
        if size < self.size:
            raise InputError(
                f"{name} is {size}; expected at least {self.size}, the number of processes"
            )


class Requests:
    """Requests of single processes, such as a stop, that all processes follow at the same step.

    Every process asks at every step. With several processes, the answer is that of the step before,
    so that no process waits for its device.
    """

    def __init__(self, group: Ranks) -> None:
        """Take the processes."""
        self._group = group
        self._sent: Callable[[], bool] | None = None

    def any(self, flag: bool) -> bool:
        """Send this process's flag; return whether a process had set it, at the step before."""
        if self._group.size == 1:
            return flag
        answer = self._sent is not None and self._sent()
        # a request that is followed now is not sent again
        self._sent = None if answer else self._group.begin_any(flag)
        return answer


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join torchrun's process group (``RANK``, ``WORLD_SIZE``) for the duration of the context."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    if size == 1:
        yield Ranks(device=device)
        return
    store, rank, _ = next(distributed.rendezvous("env://"))
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield Ranks(rank, size, device, store)
    finally:
        distributed.destroy_process_group()
