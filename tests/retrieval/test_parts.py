"""Search in parts of the passages: the run of one search, whatever the number of parts."""

import numpy as np
import pytest

from cdmae.arrays import write_array
from cdmae.errors import InputError
from cdmae.ranges import Part
from cdmae.retrieval import parts
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import read_vectors
from cdmae.runs import read_run, write_run


def search_in_parts(folder, queries, shards, depth, number):
    runs = []
    for index in range(number):
        own, first = parts.part_of(shards, Part(index + 1, number))
        runs.append(folder / f"{index}-of-{number}.parquet")
        write_run(runs[-1], parts.shifted(search(queries, own, depth), first))
    merged = folder / f"{number}.parquet"
    parts.merge_runs(runs, [merged], depth)
    return merged


@pytest.mark.parametrize("number", [1, 3, 7])
@pytest.mark.parametrize("depth", [1, 12, 60])
def test_parts_change_no_bit_of_a_run(depth, number, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "QUERIES_AT_ONCE", 3)
    rng = np.random.default_rng(0)
    queries, passages = (rng.integers(-2, 3, (size, 4)).astype(np.float32) for size in (10, 50))
    shards = np.split(passages, [9, 18, 27, 36])
    write_run(tmp_path / "whole.parquet", search(queries, shards, depth))
    merged = search_in_parts(tmp_path, queries, shards, depth, number)
    whole = read_run(tmp_path / "whole.parquet")
    found = read_run(merged)
    for name in ("passages", "scores", "starts"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name


def test_several_outputs_are_merged_each_from_its_own_runs(tmp_path):
    rng = np.random.default_rng(1)
    shards = [rng.standard_normal((5, 4), np.float32)] * 2
    runs = []
    for index in range(2):
        own, first = parts.part_of(shards, Part(index + 1, 2))
        for queries in (2, 3):
            runs.append(tmp_path / f"{index}.{queries}.parquet")
            asked = rng.standard_normal((queries, 4), np.float32)
            write_run(runs[-1], parts.shifted(search(asked, own, 4), first))
    outputs = [tmp_path / "two.parquet", tmp_path / "three.parquet"]
    parts.merge_runs(runs, outputs, 4)
    assert [len(read_run(path)) for path in outputs] == [2, 3]
    with pytest.raises(
        InputError, match="have different numbers of queries; delete them and run again"
    ):
        parts.merge_runs(runs[:2], outputs[:1], 4)


def test_vectors_of_parts_are_joined_in_order(tmp_path):
    vectors = np.arange(20, dtype=np.float32).reshape(5, 4)
    for part, rows in enumerate(([0, 2], [2, 3], [3, 5])):
        (tmp_path / f"{part}").mkdir()
        write_array(tmp_path / f"{part}/00000.npy", vectors[slice(*rows)])
    parts.join_vectors(tmp_path / "joined", [tmp_path / f"{part}" for part in range(3)])
    found = np.concatenate([shard[:] for shard in read_vectors(tmp_path / "joined")])
    assert np.array_equal(found, vectors)


def test_a_part_covers_its_share_and_no_other_text_is_one():
    for parts_of in (1, 3, 7):
        edges = [Part.read(f"{number}-of-{parts_of}").of(10) for number in range(1, parts_of + 1)]
        assert [row for first, last in edges for row in range(first, last)] == list(range(10))
    for text in ("0-of-3", "4-of-3", "3", "1-of-x", "1-of-2-of-3"):
        with pytest.raises(InputError, match="is not a part; allowed: .*3-of-7"):
            Part.read(text)
