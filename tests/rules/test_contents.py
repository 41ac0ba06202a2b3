"""Digests of the user's files: another content shows, another time does not."""

import os
import shutil

from cdmae.files import read_json, write_json
from workflow.contents import Contents


def test_the_content_of_files_and_folders_shows_and_nothing_else(tmp_path):
    table, model, kept = (tmp_path / name for name in ("table.jsonl", "model", "kept.json"))
    (model / "pooling").mkdir(parents=True)
    table.write_text("one")
    (model / "pooling/config.json").write_text("{}")

    def found():
        return Contents(kept).of([table, model, tmp_path / "nothing"])

    first = found()
    assert list(first) == [f"content of {path}" for path in (model, tmp_path / "nothing", table)]
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


def test_a_file_is_read_again_only_after_a_change(tmp_path):
    table, kept = tmp_path / "table.jsonl", tmp_path / "kept.json"
    table.write_text("one")
    Contents(kept, writes=False).of([table])
    assert not kept.exists()
    Contents(kept).of([table])
    (entry,) = read_json(kept).values()
    write_json(kept, {str(table): [*entry[:-1], "kept"]})
    assert Contents(kept).of([table]) == {f"content of {table}": "kept"}
