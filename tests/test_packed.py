"""Packing: every row where its passage says, framed, cut, rounded up."""

from __future__ import annotations

import numpy as np
import torch

from cdmae.models import packed
from cdmae.tokens.corpus import Tokens

TOKENS = Tokens(
    ids=np.array([11, 12, 13, 14, 21, 31, 32], np.uint16),
    starts=np.array([0, 4, 5, 5, 7]),
    text_starts=np.array([1, 4, 5, 5]),
    word_starts=np.ones(40, bool),
)


def test_take_and_frame_by_hand() -> None:
    """Passages in the order asked for, cut, with [CLS] = 2 and [SEP] = 3; an empty one keeps those."""
    inner = packed.take(TOKENS, np.array([3, 0, 2, 1]), longest=3)
    assert inner.values.tolist() == [31, 32, 11, 12, 13, 21]
    framed = packed.frame(inner, cls=2, sep=3)
    assert framed.values.tolist() == [2, 31, 32, 3, 2, 11, 12, 13, 3, 2, 3, 2, 21, 3]
    assert framed.starts.tolist() == [0, 4, 9, 11, 14]
    assert packed.content(framed.starts).astype(int).tolist() == [0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0]


def test_pack_by_hand() -> None:
    """Positions restart in every passage, cells lie in a grid as wide as the longest, rows are rounded up."""
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


def test_a_range_of_ragged_sequences_is_packed_like_a_copy() -> None:
    """A slice keeps its own starts."""
    whole = packed.Ragged.of([[1], [2, 3], [4, 5, 6], [7]])
    cut = whole[1:3]
    assert cut.values.tolist() == [2, 3, 4, 5, 6]
    assert cut.starts.tolist() == [0, 2, 5]
