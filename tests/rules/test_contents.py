"""Digests of the user's files: another content shows, another time does not."""

import os
import shutil

import pytest

from cdmae.files import read_json, write_json
from workflow import contents
from workflow.contents import Contents


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file of digests, in which also files of this moment are kept."""
    monkeypatch.setattr(contents, "UNSETTLED", -(10**12))
    return tmp_path / "kept/contents.json"


def test_the_content_of_files_and_folders_shows_and_nothing_else(tmp_path, kept):
    table, model = tmp_path / "table.jsonl", tmp_path / "model"
    (model / "pooling").mkdir(parents=True)
    table.write_text("one")
    (model / "pooling/config.json").write_text("{}")

    def found():
        return Contents(kept).of([table, model, tmp_path / "nothing"])

    first = found()
    assert list(first) == [f"content of {path}" for path in (model, tmp_path / "nothing", table)], (
        "in order"
    )
    assert first == found()
    os.utime(table, (0, 0))
    (model / "pooling/.hidden").touch()
    shutil.copy(table, tmp_path / "copy")
    os.replace(tmp_path / "copy", table)
    assert first == found(), "the same content in a new file"
    status = table.stat()
    table.write_text("two")
    os.utime(table, ns=(status.st_atime_ns, status.st_mtime_ns))
    other = found()
    assert {key for key in first if other[key] != first[key]} == {f"content of {table}"}, (
        "of the same size, time and inode"
    )
    (model / "pooling/config.json").rename(model / "pooling/other.json")
    assert found()[f"content of {model}"] != first[f"content of {model}"]


def test_a_file_is_read_again_only_after_a_change_and_when_its_times_are_settled(
    tmp_path, kept, monkeypatch
):
    table = tmp_path / "table.jsonl"
    table.write_text("one")
    Contents(kept).of([table])
    (entry,) = read_json(kept).values()
    write_json(kept, {str(table): [*entry[:-1], "kept"]})
    assert Contents(kept).of([table]) == {f"content of {table}": "kept"}
    assert Contents(kept, writes=False).of([table]) == {f"content of {table}": "kept"}
    monkeypatch.setattr(contents, "UNSETTLED", 10**12)
    kept.unlink()
    Contents(kept).of([table])
    assert read_json(kept) == {}, "within the clock's precision, it may change once more"
