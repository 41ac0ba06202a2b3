"""Files are read as they were written, whole or in part; a killed writer leaves none."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdmae import files
from cdmae.arrays import appending, write_array
from cdmae.collections.store import (
    PASSAGES,
    Collection,
    read_passages,
    take_passages,
    write_collection,
)
from cdmae.errors import InputError
from cdmae.evaluation.per_query import MEASURES, read_measures, write_measures
from cdmae.files import complete, link, read_json
from cdmae.runs import Run, read_run, write_run


@pytest.mark.parametrize("rows", [[6, 0, 5, 6], [3], []])
def test_rows_are_taken_in_their_order(tmp_path, rows):
    """Ten passages in row groups of three."""
    table = pa.table({name: [f"{name} {row}" for row in range(10)] for name in PASSAGES.names})
    pq.write_table(table, tmp_path / "passages.parquet", row_group_size=3)
    assert take_passages(tmp_path, np.array(rows)).equals(table.take(pa.array(rows, pa.int64())))


# --- arrays, runs, measures -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
@pytest.mark.parametrize("lengths", [[], [0], [3, 0, 200_000]])
def test_arrays_are_written_as_numpy_saves_them_whole_or_in_parts(tmp_path, kind, lengths):
    parts = [np.arange(length).astype(kind) for length in lengths]
    with appending(tmp_path / "grown.npy", kind) as append:
        for part in parts:
            append(part)
    whole = np.concatenate([np.empty(0, kind), *parts])
    write_array(tmp_path / "written.npy", whole)
    np.save(tmp_path / "saved.npy", whole)
    saved = (tmp_path / "saved.npy").read_bytes()
    assert {(tmp_path / f"{name}.npy").read_bytes() for name in ("grown", "written")} == {saved}
    np.testing.assert_array_equal(np.load(tmp_path / "grown.npy", mmap_mode="r"), whole)


@pytest.mark.parametrize("name", ["007", "1e5", "true", "NA", "a\rb", 'a"\tb\n', "\ufeffq"])
def test_names_and_ids_in_measures_stay_text(tmp_path, name):
    values = pd.DataFrame({"measure": ["RR@10", "R@50"], "value": [0.5, 1.0]})
    frame = values.assign(collection=name, split=name, query_id=name)[MEASURES]
    write_measures(tmp_path / "measures.tsv", frame)
    assert read_measures(tmp_path / "measures.tsv").to_dict("list") == frame.to_dict("list")


@pytest.mark.parametrize("content", [b"{", b"\xff"])
def test_a_file_that_is_no_json_is_refused_by_its_name(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{path} "):
        read_json(path)


def test_a_flipped_bit_in_passages_or_runs_is_noticed(tmp_path):
    numbers = [str(row * 7919 % 2000) for row in range(2000)]
    table = pa.table(dict.fromkeys(PASSAGES.names, numbers))
    write_collection(tmp_path, Collection(table, {}, {}, {}))
    write_run(tmp_path / "run.parquet", Run.of([np.arange(50)] * 100, [np.ones(50)] * 100))
    for name, read in (("passages.parquet", read_passages), ("run.parquet", read_run)):
        content = bytearray((tmp_path / name).read_bytes())
        content[len(content) // 3] ^= 1
        (tmp_path / name).write_bytes(content)
        with pytest.raises(OSError, match="CRC"):
            read(tmp_path if name.startswith("p") else tmp_path / name)


# --- complete -------------------------------------------------------------------------------------


def fill(path: Path, text: str, *, folder: bool) -> None:
    with complete(path) as part:
        if folder:
            part.mkdir()
            part /= "file"
        part.write_text(text)


def texts(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.rglob("*") if path.is_file()]


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """The file system may write a rename first: after a power cut, the output would be empty."""
    synced = []

    def sync(descriptor):
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).relative_to(tmp_path).as_posix()
        synced.append((name, (tmp_path / "a").exists()))

    monkeypatch.setattr(os, "fsync", sync)
    fill(tmp_path / "a", "text", folder=True)
    assert ("/file", False) in [(name[-5:], named) for name, named in synced]
    assert synced[-1] == (".", True)


@pytest.mark.parametrize("folder", [False, True])
def test_a_killed_process_leaves_the_old_output_and_the_next_one_tidies_up(
    tmp_path, monkeypatch, folder
):
    fill(tmp_path / "a", "old", folder=folder)
    with monkeypatch.context() as patch:
        patch.setattr(files, "_sync", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        child = os.fork()
        if not child:
            fill(tmp_path / "a", "half", folder=folder)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert sorted(texts(tmp_path)) == ["half", "old"]
    fill(tmp_path / "a", "new", folder=folder)
    assert texts(tmp_path) == ["new"]


def test_a_folder_replaces_all_a_file_only_a_file_and_an_error_changes_nothing(tmp_path):
    for text, folder in (("one", False), ("two", False), ("three", True), ("four", True)):
        fill(tmp_path / "a", text, folder=folder)
        assert texts(tmp_path) == [text]
    with pytest.raises(IsADirectoryError):
        fill(tmp_path / "a", "five", folder=False)
    with pytest.raises(ZeroDivisionError), complete(tmp_path / "a") as aside:
        aside.write_text("hal")
        raise ZeroDivisionError
    assert texts(tmp_path) == ["four"]
    (tmp_path / "b").symlink_to("a")
    fill(tmp_path / "b", "five", folder=True)
    assert (tmp_path / "a/file").read_text() == "four" and not (tmp_path / "b").is_symlink()


def test_the_digest_of_a_folder_changes_with_the_name_of_a_file(tmp_path):
    (tmp_path / "a").write_text("one")
    before = files.digest(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert files.digest(tmp_path) != before


def test_an_edit_of_a_linked_file_does_not_change_the_original(tmp_path):
    """Weights are linked and read-only; other files are copied."""
    config, weights = tmp_path / "config.json", tmp_path / "model.safetensors"
    (tmp_path / "released").mkdir()
    for path in (config, weights):
        path.write_text("trained")
        link(path, tmp_path / "released" / path.name)
    with open(tmp_path / "released/config.json", "r+") as file:
        file.write("EDITED!")
    assert config.read_text() == "trained"
    assert weights.samefile(tmp_path / "released/model.safetensors")
    assert weights.stat().st_mode & 0o222 == 0
