"""The files of a collection."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdmae import files
from cdmae.errors import InputError


@pytest.mark.parametrize("rows", [[6, 0, 5, 6], [3], [9, 4, 2], []])
def test_rows_are_taken_in_their_order_from_the_groups_they_lie_in(tmp_path, monkeypatch, rows) -> None:
    table = pa.table({name: [f"{name} {row}" for row in range(10)] for name in files.PASSAGES.names})
    pq.write_table(table, tmp_path / "passages.parquet", row_group_size=3)
    groups = []
    read = pq.ParquetFile.read_row_groups
    spy = lambda self, which: groups.extend(which) or read(self, which)  # noqa: E731
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", spy)
    assert files.take_passages(tmp_path, np.array(rows)).equals(table.take(pa.array(rows, pa.int64())))
    assert groups == sorted({row // 3 for row in rows})


def test_truncated_tokens_are_named(tmp_path) -> None:
    arrays = [np.arange(3, dtype=np.uint16), np.array([0, 3]), np.array([1]), np.ones(4, bool)]
    files.write_tokens(tmp_path / "tokens", files.Tokens(*arrays))
    path = tmp_path / "tokens/starts.npy"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"starts\.npy is not a complete array"):
        files.read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize("text", ["", "collection\tsplit\tquery_id\tmeasure\tvalue\na\tdev\tq\tRR@10\t\n"])
def test_damaged_measures_are_named(tmp_path, text):
    path = tmp_path / "measures.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match="measures.tsv is damaged .*; delete it and run again"):
        files.read_measures(path)
