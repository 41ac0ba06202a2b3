"""Find the largest of many numbers and its position, much faster than ``torch.max``."""

from __future__ import annotations

import torch
from torch import Tensor

# types of positions, by the most positions that they count
COUNTERS = {1 << 8: torch.uint8, 1 << 15: torch.int16, 1 << 31: torch.int32}


def counter(count: int) -> torch.dtype:
    """Return the smallest type of positions 0 to count - 1."""
    return next(kind for most, kind in COUNTERS.items() if count <= most)


def largest(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest of values [b, n, v] over n, and its first position, both [b, v].

    Positions have the type `counter`. Where the largest is NaN, the position is the last.
    """
    count = values.shape[1]
    kind = counter(count)
    # Positions are counted from the end, so that the largest number is the first position.
    from_end = torch.arange(count - 1, -1, -1, device=values.device).to(kind)[:, None]
    found = values.amax(dim=1, keepdim=True)
    matches = (values == found).view(torch.uint8).to(kind)
    return found[:, 0], count - 1 - matches.mul_(from_end).amax(dim=1)
