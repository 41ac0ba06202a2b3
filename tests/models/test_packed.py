"""Packing: every row where its passage says, framed, cut, rounded up."""

from __future__ import annotations

import numpy as np
import torch

from cdmae.models import packed


def test_pack_by_hand() -> None:
    """Positions restart in every passage, cells lie in a grid as wide as the longest, rows are
    rounded up.
    """
    batch = packed.pack([[2, 5, 3], [2, 3], [2, 6, 7, 3]])
    assert len(batch) == 3
    assert batch.ids.shape == batch.positions.shape == (packed.BLOCK,)
    assert batch.ids[:9].tolist() == [2, 5, 3, 2, 3, 2, 6, 7, 3]
    assert batch.positions[:9].tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert batch.starts.tolist() == [0, 3, 5, 9]
    assert batch.layout.longest == packed.WIDTH == 8
    assert batch.layout.cells.tolist() == [0, 1, 2, 8, 9, 16, 17, 18, 19]
    assert not batch.ids[9:].any()


def test_select_by_hand() -> None:
    """Chosen rows keep their passages, also where a passage has none."""
    rows = packed.select(np.array([1, 2, 6, 8]), np.array([0, 3, 5, 9]))
    assert rows.index[:4].tolist() == [1, 2, 6, 8]
    assert rows.layout.starts.tolist() == [0, 2, 2, 4]
    assert rows.layout.longest == 8
    assert rows.layout.cells.tolist() == [0, 1, 16, 17]


def test_row_counts_are_few() -> None:
    """The CPU sees one row count per block; CUDA needs no filler."""
    cpu = torch.device("cpu")
    assert {packed.row_count(count, cpu) for count in range(1, 129)} == {64, 128}
    assert packed.row_count(0, cpu) == 64
    assert [packed.row_count(count, torch.device("cuda")) for count in (0, 1, 65)] == [1, 1, 65]
