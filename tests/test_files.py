"""Formats: files are read as they were written, whole or in part, and damaged files are refused."""

import errno
import os
import re
import resource
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdmae import collections, files, runs
from cdmae.arrays import appending, read_array, write_array
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
from cdmae.files import complete, link, read_json
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
    """Record the row groups that are read."""
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
def test_rows_are_taken_in_their_order_and_only_their_groups_are_read(
    tmp_path, passages, groups, rows
):
    assert take_passages(tmp_path, np.array(rows)).equals(passages.take(pa.array(rows, pa.int64())))
    assert groups == sorted({row // 3 for row in rows})


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 10, 99])
def test_passages_stream_in_tables_of_equal_size_for_any_row_groups(tmp_path, passages, rows):
    found = list(stream_passages(tmp_path, rows=rows))
    assert [len(table) for table in found] == [
        min(rows, 10 - first) for first in range(0, 10, rows)
    ]
    assert pa.concat_tables(found).equals(passages)
    assert count_passages(tmp_path) == 10
    texts = pa.concat_tables(stream_passages(tmp_path, ["text"], rows=rows))
    assert texts.equals(passages.select(["text"])) and read_passages(tmp_path, ["text"]).equals(
        texts
    )


@pytest.mark.parametrize(
    ("first", "last"), [(0, 10), (2, 4), (3, 6), (5, 6), (7, None), (4, 4), (0, 0)]
)
def test_a_range_of_passages_reads_only_its_groups(tmp_path, passages, groups, first, last):
    found = list(stream_passages(tmp_path, rows=2, first=first, last=last))
    assert [row for table in found for row in table["text"].to_pylist()] == passages[
        "text"
    ].to_pylist()[first:last]
    assert groups == sorted({row // 3 for row in range(10)[first:last]})


def test_a_collection_without_passages_streams_nothing(tmp_path):
    pq.write_table(PASSAGES.empty_table(), tmp_path / "passages.parquet")
    assert list(stream_passages(tmp_path)) == [] and count_passages(tmp_path) == 0


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
@pytest.mark.parametrize("lengths", [[], [0], [3, 0, 200_000]])
def test_appending_writes_the_file_that_numpy_saves(tmp_path, kind, lengths):
    parts = [np.arange(length).astype(kind) for length in lengths]
    with appending(tmp_path / "grown.npy", kind) as append:
        for part in parts:
            append(part)
    whole = np.concatenate([np.empty(0, kind), *parts])
    write_array(tmp_path / "written.npy", whole)
    np.save(tmp_path / "saved.npy", whole)
    grown = (tmp_path / "grown.npy").read_bytes()
    assert grown == (tmp_path / "written.npy").read_bytes()
    assert grown.startswith((tmp_path / "saved.npy").read_bytes())
    np.testing.assert_array_equal(read_array(tmp_path / "grown.npy"), whole)
    np.testing.assert_array_equal(np.load(tmp_path / "grown.npy"), whole)


@pytest.mark.parametrize(
    "values", [np.ones((3, 4), np.float16), np.zeros((0, 5), bool), np.arange(6).reshape(2, 3).T]
)
def test_damaged_arrays_are_refused(tmp_path, values):
    """The damage is in the header, the values or the checksum."""
    path = tmp_path / "a.npy"
    write_array(path, values)
    found = read_array(path)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
    whole = path.read_bytes()
    damaged = [
        whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :] for at in range(0, len(whole), 3)
    ]
    for content in (*damaged, whole[:-1], whole[:-15], whole[:9], b""):
        path.write_bytes(content)
        with pytest.raises(
            InputError, match="a.npy is not a complete array .*; delete it and run again"
        ):
            read_array(path)


def test_passages_and_queries_that_cannot_be_numbered_are_refused(tmp_path, monkeypatch):
    passages = pa.table(dict.fromkeys(PASSAGES.names, ["1", "2", "3"]))
    queries = {"q": pd.DataFrame({"query_id": list("abc"), "text": list("xyz")})}
    qrels = {"q": pd.DataFrame({"query_id": ["a"], "passage_id": ["1"], "grade": [1]})}
    monkeypatch.setattr(collections, "MOST_PASSAGES", 2)
    with pytest.raises(
        InputError, match="more than 2 passages .at least 3., which cannot be numbered"
    ):
        write_collection(tmp_path / "a", Collection(passages, queries, qrels, {}))
    assert not list((tmp_path / "a").iterdir())
    with pytest.raises(InputError, match="more than 2 queries of split q"):
        write_collection(tmp_path / "b", Collection(passages[:2], queries, qrels, {}))


def test_write_errors_have_the_number_of_the_system_and_the_name_of_the_file(tmp_path):
    values = np.zeros(1 << 20)

    def grow(path: Path) -> None:
        with appending(path, np.float64) as append:
            append(values)

    for write in (lambda path: write_array(path, values), grow):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            write(Path("/dev/full"))
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
        try:
            with pytest.raises(OSError) as caught:  # noqa: PT011
                write(tmp_path / "a.npy")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "a.npy"))


@pytest.mark.parametrize("lengths", [[2, 0, 3, 1, 0, 2], [0, 0], [1], []])
def test_runs_are_read_as_they_were_written(tmp_path, monkeypatch, lengths):
    """Row groups have two queries; the run is read whole and for some queries."""
    monkeypatch.setattr(runs, "QUERY_GROUP", 2)
    monkeypatch.setattr(runs, "QUERIES_AT_ONCE", 1)
    rng = np.random.default_rng(0)
    ranked = [rng.integers(0, 99, length).astype(np.int32) for length in lengths]
    scores = [rng.random(length, np.float32) for length in lengths]
    write_run(tmp_path / "run.parquet", Run.of(ranked, scores))
    assert pq.read_metadata(tmp_path / "run.parquet").num_row_groups == max(
        1, (len(lengths) + 1) // 2
    )
    assert count_queries(tmp_path / "run.parquet") == len(lengths)
    whole, some = (
        read_run(tmp_path / "run.parquet", rows) for rows in (None, np.arange(0, len(lengths), 2))
    )
    for query in range(len(lengths)):
        for found, expected in zip(
            whole.ranked(query), (ranked[query], scores[query]), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        chosen = slice(None) if query % 2 == 0 else slice(0)
        np.testing.assert_array_equal(some.ranked(query)[0], ranked[query][chosen])
    assert len(whole) == len(some) == len(lengths)


def test_truncated_tokens_are_refused(tmp_path):
    arrays = [np.arange(3, dtype=np.uint16), np.array([0, 3]), np.array([1]), np.ones(4, bool)]
    write_tokens(tmp_path / "tokens", Tokens(*arrays))
    path = tmp_path / "tokens/starts.npy"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"starts\.npy is not a complete array"):
        read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("ids", None, np.float32), ("ids", 5, 0x8003), ("starts", 0, 1), ("starts", 1, 5),
        ("starts", 2, 1 << 56), ("starts", 3, 1 << 56), ("text_starts", 0, -1), ("text_starts", 2, 3),
    ],
)  # fmt: skip
def test_damaged_offsets_and_ids_are_refused(tmp_path, name, index, value):
    """Compiled code would otherwise read beyond the arrays."""
    ids, starts = np.arange(6, dtype=np.uint16) % 4, np.array([0, 2, 4, 6])
    written = Tokens(ids, starts, starts[:-1] + [0, 1, 2], np.ones(4, bool))
    write_tokens(tmp_path / "tokens", written)
    assert read_tokens(tmp_path / "tokens").starts.tolist() == [0, 2, 4, 6]
    array = np.load(tmp_path / f"tokens/{name}.npy")
    if index is None:
        array = array.astype(value)
    else:
        array[index] = value
    write_array(tmp_path / f"tokens/{name}.npy", array)
    with pytest.raises(InputError, match=f"{name}.npy is damaged.*; delete .*tokens and run again"):
        read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize(
    "text", ["", "collection\tsplit\tquery_id\tmeasure\tvalue\na\tdev\tq\tRR@10\t\n"]
)
def test_damaged_measures_are_refused(tmp_path, text):
    path = tmp_path / "measures.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match="measures.tsv is damaged .*; delete it and run again"):
        read_measures(path)


@pytest.mark.parametrize(
    "name", ["2019", "007", "1e5", "true", "inf", "NA", "a\rb", 'a"\tb\n', "\ufeffq"]
)
def test_names_and_ids_in_measures_stay_text(tmp_path, name):
    values = pd.DataFrame({"measure": ["RR@10", "R@50"], "value": [0.5, 1.0]})
    frame = values.assign(collection=name, split=name, query_id=name)[MEASURES]
    write_measures(tmp_path / "measures.tsv", frame)
    assert read_measures(tmp_path / "measures.tsv").to_dict("list") == frame.to_dict("list")


def flipped(path):
    """Write `path` with one flipped bit, at thirty offsets in turn, and then restore it."""
    whole = path.read_bytes()
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # what follows is the footer
    for place in np.linspace(60, pages - 1, 30).astype(
        int
    ):  # the first bytes are the header of a page
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        yield place
    path.write_bytes(whole)


def test_every_reader_of_passages_and_runs_notices_a_flipped_bit(tmp_path):
    numbers = [str(row * 7919 % 2000) for row in range(2000)]
    table = pa.table(
        {"passage_id": numbers, "title": numbers, "text": [f"text {each}" for each in numbers]}
    )
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


def test_a_damaged_footer_is_refused_or_changes_nothing(tmp_path):
    frames = {"q": pd.DataFrame({"query_id": ["a", "b"], "text": ["x", "y"]})}
    write_collection(
        tmp_path, Collection(pa.table(dict.fromkeys(PASSAGES.names, ["1"])), frames, {}, {})
    )
    path = tmp_path / "queries.parquet"
    whole, expected, refused = path.read_bytes(), read_queries(tmp_path, "q"), 0
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in range(footer, len(whole), 7):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        try:
            assert read_queries(tmp_path, "q").equals(expected), place
        except InputError as error:
            refused += 1
            assert "queries.parquet" in str(error) or "has no queries" in str(error)
    assert refused > 10


def test_the_remedy_is_to_delete_the_whole_output(tmp_path):
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


def test_a_truncated_row_is_refused(tmp_path):
    (tmp_path / "retrieval.tsv").write_text("step\trr\tpassages\n0\t0.5\t20\n10\t0.")
    with pytest.raises(InputError, match="a row is incomplete"):
        read_table(tmp_path / "retrieval.tsv", gaps=False)


# --- complete -------------------------------------------------------------------------------------


def killed(work) -> None:
    """Do some work in a process that is killed when it would sync or rename its output."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def kill(*_, **__) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill(path: Path, text: str, *, folder: bool) -> None:
    with complete(path) as part:
        if folder:
            part.mkdir()
            part /= "file"
        part.write_text(text)


def test_content_is_on_the_disk_before_it_has_its_name_and_then_the_name_is(tmp_path, monkeypatch):
    """The file system may write a rename first: after a power cut, the output would be empty."""
    synced = []

    def sync(descriptor):
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).relative_to(tmp_path).as_posix()
        synced.append((re.sub(r"^\..*\.part", "hidden", name), (tmp_path / "out").exists()))

    monkeypatch.setattr(os, "fsync", sync)
    with complete(tmp_path / "out") as aside:
        (aside / "inner").mkdir(parents=True)
        (aside / "inner/file").write_text("content")
    assert sorted(synced[:-1]) == [
        ("hidden", False),
        ("hidden/inner", False),
        ("hidden/inner/file", False),
    ]
    assert synced[-1] == (".", True)


@pytest.mark.parametrize("folder", [False, True])
def test_hidden_files_of_killed_processes_are_removed_and_other_hidden_files_kept(
    tmp_path, monkeypatch, folder
):
    """This holds for files and folders, and for outputs with a common prefix."""
    with monkeypatch.context() as patch:
        patch.setattr(files, "_sync", kill)
        for name in ("a", "a.txt"):
            killed(lambda name=name: fill(tmp_path / name, "half", folder=folder))
    with complete(tmp_path / "a") as living:
        living.write_text("first")
        assert len(list(tmp_path.iterdir())) == 2
        monkeypatch.setattr(files.os, "getpid", lambda: 1)  # in a container
        fill(tmp_path / "a", "second", folder=folder)
        assert living.read_text() == "first"
    assert (tmp_path / "a").read_text() == "first"
    fill(tmp_path / "a.txt", "whole", folder=folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.txt"]


def test_hidden_files_of_another_host_are_removed_after_a_day_without_a_write(
    tmp_path, monkeypatch
):
    old, young = tmp_path / ".a.0badcafe.7.0badcafe.part", tmp_path / ".a.0badcafe.8.0badcafe.part"
    for part in (old, young):
        part.mkdir()
        (part / "file").touch()
        os.utime(part, (1, 1))
    os.utime(old / "file", (1, 1))
    fill(tmp_path / "a", "text", folder=False)
    assert not old.exists() and young.exists()


@pytest.mark.parametrize("folder", [False, True])
def test_a_kill_during_the_replacement_loses_neither_output(tmp_path, monkeypatch, folder):
    """A file is replaced in one step; both folders exist under some name."""
    fill(tmp_path / "a", "old", folder=folder)
    replace, steps = os.replace, []

    def second(*paths) -> None:
        steps.append(paths)
        if len(steps) == (2 if folder else 1):
            kill()
        replace(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", second)
        killed(lambda: fill(tmp_path / "a", "new", folder=folder))
    found = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(found) == ["new", "old"]
    if not folder:
        assert (tmp_path / "a").read_text() == "old"
    fill(tmp_path / "a", "newer", folder=folder)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("folder", [False, True])
def test_an_output_that_cannot_be_replaced_is_kept(tmp_path, monkeypatch, folder):
    fill(tmp_path / "a", "old", folder=folder)
    before = list(tmp_path.rglob("*"))
    replace = os.replace

    def fail(source, target) -> None:
        if Path(target).name == "a" and "old" not in str(
            [path.read_text() for path in Path(source).glob("file")]
        ):
            raise OSError(errno.EBUSY, "busy")
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(OSError, match="busy"):
        fill(tmp_path / "a", "new", folder=folder)
    assert list(tmp_path.rglob("*")) == before


def test_a_folder_and_a_file_replace_each_other(tmp_path):
    for text, folder in (("one", True), ("two", False), ("three", True), ("four", True)):
        fill(tmp_path / "a", text, folder=folder)
        assert [path.read_text() for path in tmp_path.rglob("*") if path.is_file()] == [text]
    (tmp_path / "b").symlink_to("a")
    fill(tmp_path / "b", "five", folder=True)
    assert (tmp_path / "a/file").read_text() == "four" and not (tmp_path / "b").is_symlink()


def test_an_edit_of_a_linked_file_does_not_change_the_original(tmp_path):
    """Weights are linked and read-only; other files are copied."""
    config, weights = tmp_path / "config.json", tmp_path / "model.safetensors"
    for path in (config, weights):
        path.write_text("trained")
        (tmp_path / "released").mkdir(exist_ok=True)
        link(path, tmp_path / "released" / path.name)
    with open(tmp_path / "released/config.json", "r+") as file:
        file.write("EDITED!")
    assert config.read_text() == "trained"
    assert weights.samefile(tmp_path / "released/model.safetensors")
    assert weights.stat().st_mode & 0o222 == 0


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "9" * 5000, "{", "\ud800"], ids=["deep", "digits", "cut", "not UTF-8"]
)
def test_invalid_json_is_refused(tmp_path, text):
    (tmp_path / "about.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match="about.json is not JSON .*; delete it and run again"):
        read_json(tmp_path / "about.json")
