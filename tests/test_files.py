"""Formats: what is written is read back, in the pieces that are asked for; what is damaged is named."""

import errno
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdmae import runs
from cdmae.arrays import appending, write_array
from cdmae.collections.store import (
    PASSAGES,
    Collection,
    count_passages,
    read_passages,
    read_queries,
    stream_passages,
    take_passages,
    write_collection,
)
from cdmae.errors import InputError
from cdmae.evaluation.per_query import MEASURES, read_measures, read_table, write_measures
from cdmae.files import read_json
from cdmae.runs import Run, count_queries, read_run, write_run
from cdmae.tokens.corpus import Tokens, read_tokens, write_tokens


@pytest.fixture
def passages(tmp_path):
    """Ten passages in row groups of three."""
    table = pa.table({name: [f"{name} {row}" for row in range(10)] for name in PASSAGES.names})
    pq.write_table(table, tmp_path / "passages.parquet", row_group_size=3)
    return table


@pytest.fixture
def groups(monkeypatch):
    """The row groups that are read, as they are."""
    found = []
    read, stream = pq.ParquetFile.read_row_group, pq.ParquetFile.iter_batches

    def one(self, group):
        found.append(group)
        return read(self, group)

    def some(self, rows, groups, columns):
        found.extend(groups)
        return stream(self, rows, groups, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", one)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", some)
    return found


@pytest.mark.parametrize("rows", [[6, 0, 5, 6], [3], [9, 4, 2], []])
def test_rows_are_taken_in_their_order_from_the_groups_they_lie_in(tmp_path, passages, groups, rows):
    assert take_passages(tmp_path, np.array(rows)).equals(passages.take(pa.array(rows, pa.int64())))
    assert groups == sorted({row // 3 for row in rows})


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 10, 99])
def test_passages_stream_in_tables_of_one_size_whatever_the_row_groups(tmp_path, passages, rows):
    found = list(stream_passages(tmp_path, rows=rows))
    assert [len(table) for table in found] == [min(rows, 10 - first) for first in range(0, 10, rows)]
    assert pa.concat_tables(found).equals(passages)
    assert count_passages(tmp_path) == 10
    texts = pa.concat_tables(stream_passages(tmp_path, ["text"], rows=rows))
    assert texts.equals(passages.select(["text"])) and read_passages(tmp_path, ["text"]).equals(texts)


@pytest.mark.parametrize(("first", "last"), [(0, 10), (2, 4), (3, 6), (5, 6), (7, None), (4, 4), (0, 0)])
def test_a_stretch_of_passages_reads_the_groups_it_lies_in(tmp_path, passages, groups, first, last):
    found = list(stream_passages(tmp_path, rows=2, first=first, last=last))
    assert [row for table in found for row in table["text"].to_pylist()] == passages["text"].to_pylist()[first:last]
    assert groups == sorted({row // 3 for row in range(10)[first:last]})


def test_a_collection_without_passages_streams_nothing(tmp_path):
    pq.write_table(PASSAGES.empty_table(), tmp_path / "passages.parquet")
    assert list(stream_passages(tmp_path)) == [] and count_passages(tmp_path) == 0


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
@pytest.mark.parametrize("lengths", [[], [0], [3, 0, 200_000]])
def test_an_array_that_was_appended_to_is_the_file_that_numpy_saves(tmp_path, kind, lengths):
    parts = [np.arange(length).astype(kind) for length in lengths]
    with appending(tmp_path / "grown.npy", kind) as append:
        for part in parts:
            append(part)
    np.save(tmp_path / "whole.npy", np.concatenate([np.empty(0, kind), *parts]))
    assert (tmp_path / "grown.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


@pytest.mark.parametrize("lengths", [[2, 0, 3, 1, 0, 2], [0, 0], [1], []])
def test_runs_are_read_list_by_list_as_they_were_written(tmp_path, monkeypatch, lengths):
    """In row groups of two queries, and some queries only."""
    monkeypatch.setattr(runs, "QUERY_GROUP", 2)
    monkeypatch.setattr(runs, "QUERIES_AT_ONCE", 1)
    rng = np.random.default_rng(0)
    ranked = [rng.integers(0, 99, length).astype(np.int32) for length in lengths]
    scores = [rng.random(length, np.float32) for length in lengths]
    write_run(tmp_path / "run.parquet", Run.of(ranked, scores))
    assert pq.read_metadata(tmp_path / "run.parquet").num_row_groups == max(1, (len(lengths) + 1) // 2)
    assert count_queries(tmp_path / "run.parquet") == len(lengths)
    whole, some = (read_run(tmp_path / "run.parquet", rows) for rows in (None, np.arange(0, len(lengths), 2)))
    for query in range(len(lengths)):
        for found, expected in zip(whole.ranked(query), (ranked[query], scores[query]), strict=True):
            np.testing.assert_array_equal(found, expected)
        chosen = slice(None) if query % 2 == 0 else slice(0)
        np.testing.assert_array_equal(some.ranked(query)[0], ranked[query][chosen])
    assert len(whole) == len(some) == len(lengths)


def test_truncated_tokens_are_named(tmp_path):
    arrays = [np.arange(3, dtype=np.uint16), np.array([0, 3]), np.array([1]), np.ones(4, bool)]
    write_tokens(tmp_path / "tokens", Tokens(*arrays))
    path = tmp_path / "tokens/starts.npy"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"starts\.npy is not a complete array"):
        read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize(
    ("name", "place", "value", "what"),
    [
        ("ids", None, np.float32, "numbers of the 4 word-pieces of word_starts.npy"),
        ("starts", 0, 1, "places that rise from 0 to 6, the word-pieces of ids.npy"),
        ("starts", 1, 5, "places that rise"),
        ("starts", 2, 1 << 56, "places that rise"),
        ("starts", 3, 1 << 56, "places that rise"),
        ("text_starts", 0, -1, "a place for every passage, between two of starts.npy"),
        ("text_starts", 2, 3, "a place for every passage"),
        ("ids", 5, 0x8003, "numbers of the 4 word-pieces of word_starts.npy"),
    ],
)
def test_tokens_that_lead_nowhere_are_named(tmp_path, name, place, value, what):
    """A flipped bit in a complete file, or another kind of numbers: compiled code would read beyond the arrays."""
    ids, starts = np.arange(6, dtype=np.uint16) % 4, np.array([0, 2, 4, 6])
    written = Tokens(ids, starts, starts[:-1] + [0, 1, 2], np.ones(4, bool))
    write_tokens(tmp_path / "tokens", written)
    assert read_tokens(tmp_path / "tokens").starts.tolist() == [0, 2, 4, 6]
    array = np.load(tmp_path / f"tokens/{name}.npy")
    if place is None:
        array = array.astype(value)
    else:
        array[place] = value
    np.save(tmp_path / f"tokens/{name}.npy", array)
    message = re.escape(f"tokens/{name}.npy is damaged: it does not hold {what}")
    with pytest.raises(InputError, match=message + ".*; delete .*tokens and run again"):
        read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize("text", ["", "collection\tsplit\tquery_id\tmeasure\tvalue\na\tdev\tq\tRR@10\t\n"])
def test_damaged_measures_are_named(tmp_path, text):
    path = tmp_path / "measures.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match="measures.tsv is damaged .*; delete it and run again"):
        read_measures(path)


@pytest.mark.parametrize("name", ["2019", "007", "1e5", "true", "inf", "NA", "a\rb", 'a"\tb\n', "\ufeffq"])
def test_names_and_ids_in_measures_stay_text(tmp_path, name):
    values = pd.DataFrame({"measure": ["RR@10", "R@50"], "value": [0.5, 1.0]})
    frame = values.assign(collection=name, split=name, query_id=name)[MEASURES]
    write_measures(tmp_path / "measures.tsv", frame)
    assert read_measures(tmp_path / "measures.tsv").to_dict("list") == frame.to_dict("list")


def flipped(path):
    """Write `path` with a flipped bit at thirty places of its pages, one after the other; then as it was."""
    whole = path.read_bytes()
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # what follows is the footer
    for place in np.linspace(60, pages - 1, 30).astype(int):  # the first bytes are the header of a page
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        yield place
    path.write_bytes(whole)


def test_every_reader_of_passages_and_runs_notices_a_flipped_bit(tmp_path):
    numbers = [str(row * 7919 % 2000) for row in range(2000)]
    table = pa.table({"passage_id": numbers, "title": numbers, "text": [f"text {each}" for each in numbers]})
    write_collection(tmp_path, Collection(table, {}, {}, {}))
    rng = np.random.default_rng(0)
    scores = [rng.random(50, np.float32) for _ in range(100)]
    write_run(tmp_path / "run.parquet", Run.of([np.arange(50)] * 100, scores))
    for name, read in [
        ("passages.parquet", lambda: read_passages(tmp_path)),
        ("passages.parquet", lambda: list(stream_passages(tmp_path))),
        ("passages.parquet", lambda: take_passages(tmp_path, np.arange(3))),
        ("run.parquet", lambda: read_run(tmp_path / "run.parquet")),
    ]:
        for _ in flipped(tmp_path / name):
            with pytest.raises(InputError, match=f"{name} is .*; delete it and run again"):
                read()


def test_a_damaged_footer_is_named_or_changes_nothing(tmp_path):
    frames = {"q": pd.DataFrame({"query_id": ["a", "b"], "text": ["x", "y"]})}
    write_collection(tmp_path, Collection(pa.table(dict.fromkeys(PASSAGES.names, ["1"])), frames, {}, {}))
    path = tmp_path / "queries.parquet"
    whole, expected, refused = path.read_bytes(), read_queries(tmp_path, "q"), 0
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in range(footer, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        try:
            assert read_queries(tmp_path, "q").equals(expected), place
        except InputError as error:
            refused += 1
            assert "queries.parquet" in str(error) or "has no queries" in str(error)
    assert refused > 10


def test_a_full_disk_is_told_as_one(tmp_path, monkeypatch):
    """NumPy tells how many bytes were written, without the system's number."""

    def fail(*_: object) -> None:
        raise OSError("82242 requested and 81856 written")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_array(tmp_path / "a.npy", np.zeros(3))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a.npy"))


def test_what_is_to_be_deleted_is_a_whole_output(tmp_path):
    folder = tmp_path / "encoders" / "cdmae"
    (folder / "snapshots" / "1").mkdir(parents=True)
    for place in (folder, folder / "snapshots" / "1", tmp_path):
        (place / "about.json").write_text("{")
    with pytest.raises(InputError, match="about.json is not JSON .*; delete it and run again"):
        read_json(folder / "about.json")
    (folder / ".snakemake_timestamp").touch()  # Snakemake knows the folder now
    for place in (folder, folder / "snapshots" / "1"):
        with pytest.raises(InputError, match=re.escape(f"; delete {folder} and run again")):
            read_json(place / "about.json")
    with pytest.raises(InputError, match="delete it and run again"):
        read_json(tmp_path / "about.json")


def test_a_row_that_is_cut_is_noticed(tmp_path):
    (tmp_path / "retrieval.tsv").write_text("step\trr\tpassages\n0\t0.5\t20\n10\t0.")
    with pytest.raises(InputError, match="a row is not complete"):
        read_table(tmp_path / "retrieval.tsv", gaps=False)
