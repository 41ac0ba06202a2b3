"""The processes of one training: one per GPU, as torchrun starts them, or a single process.

Losses are normalised over the global batch before it is divided among the processes, so they only
ever exchange sums.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Ranks:
    """The position, `rank`, of this process among the `size` processes of one training run."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")

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

    def wait(self) -> None:
        """Wait until all processes have called this."""
        self.any(False)


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join torchrun's process group (``RANK``, ``WORLD_SIZE``) for the duration of the context."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    if size == 1:
        yield Ranks(device=device)
        return
    backend = "nccl" if device.type == "cuda" else "gloo"
    # while the first process reads a large collection, the others wait
    distributed.init_process_group(backend, timeout=timedelta(days=1))
    try:
        yield Ranks(distributed.get_rank(), size, device)
    finally:
        distributed.destroy_process_group()
