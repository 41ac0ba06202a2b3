"""The files of a collection."""

import re

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


@pytest.mark.parametrize(
    ("name", "place", "value", "what"),
    [
        ("starts", 0, 1, "places that rise from 0 to 6, the word-pieces of ids.npy"),
        ("starts", 1, 5, "places that rise"),
        ("starts", 2, 1 << 56, "places that rise"),
        ("starts", 3, 1 << 56, "places that rise"),
        ("text_starts", 0, -1, "a place for every passage, between two of starts.npy"),
        ("text_starts", 2, 3, "a place for every passage"),
        ("ids", 5, 0x8003, "numbers of the 4 word-pieces of word_starts.npy"),
    ],
)
def test_tokens_that_lead_nowhere_are_named(tmp_path, name, place, value, what) -> None:
    """A flipped bit in a complete file: compiled code would read beyond the arrays."""
    ids, starts = np.arange(6, dtype=np.uint16) % 4, np.array([0, 2, 4, 6])
    written = files.Tokens(ids, starts, starts[:-1] + [0, 1, 2], np.ones(4, bool))
    files.write_tokens(tmp_path / "tokens", written)
    assert files.read_tokens(tmp_path / "tokens").starts.tolist() == [0, 2, 4, 6]
    array = np.load(tmp_path / f"tokens/{name}.npy")
    array[place] = value
    np.save(tmp_path / f"tokens/{name}.npy", array)
    message = re.escape(f"tokens/{name}.npy is damaged: it does not hold {what}")
    with pytest.raises(InputError, match=message + ".*; delete .*tokens and run again"):
        files.read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize("text", ["", "collection\tsplit\tquery_id\tmeasure\tvalue\na\tdev\tq\tRR@10\t\n"])
def test_damaged_measures_are_named(tmp_path, text):
    path = tmp_path / "measures.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match="measures.tsv is damaged .*; delete it and run again"):
        files.read_measures(path)
