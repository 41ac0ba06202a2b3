"""Write files that exist only when complete, and name files by their content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cdmae.errors import InputError

_DIGITS = 16  # hexadecimal digits of a digest
LINKED = (".safetensors", ".npy", ".npz")  # large files, which no editor opens


@contextmanager
def complete(path: Path | str) -> Iterator[Path]:
    """Yield a hidden path next to `path`; on exit, sync its content and rename it to `path`.

    A file replaces no folder. After an error, the hidden file or folder is removed and `path` is
    unchanged. The caller creates the file, or calls ``mkdir`` on the yielded path. What a killed
    process has left is removed first, so that a path may have only one writer at a time.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    _remove(part)
    try:
        yield part
        _sync(part)
        if part.is_dir():  # a rename replaces only a file
            _remove(path)
        os.replace(part, path)
        _sync(path.parent, inside=False)
    except BaseException:
        _remove(part)
        raise


def link(path: Path | str, target: Path | str) -> None:
    """Hard-link a file of weights or vectors and make it read-only; copy any other file.

    Edits of the copies, such as config.json, do not change the original. If the file system cannot
    link, weights are copied, too.
    """
    path = Path(path)
    if path.suffix not in LINKED:
        shutil.copy2(path, target)
        return
    try:
        os.link(path, target)
    except OSError:  # another file system, no support for hard links, or too many links
        shutil.copy2(path, target)
        return
    with suppress(OSError):  # another user's file
        path.chmod(path.stat().st_mode & ~0o222)


def link_folder(path: Path | str, target: Path | str) -> None:
    """Link or copy all files of a folder into a new folder, complete or not at all."""
    with complete(target) as aside:
        shutil.copytree(path, aside, copy_function=link)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file in UTF-8, complete or not at all."""
    with complete(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write an indented JSON file with its keys in the order given."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path | str) -> Any:
    """Read a JSON file; raises `InputError` if it is not valid JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:  # also for bytes that are not UTF-8
        raise InputError(f"{path} is not JSON ({error})") from None


def digest(path: Path | str) -> str:
    """Hash the content of a file, or of all files in a folder with their names there.

    Hidden files do not count. Whatever cannot be read is left to its reader: the digest of a
    missing file is "missing".
    """
    path = Path(path)
    try:
        if path.is_dir():
            inside = sorted(path.rglob("*"))
            names = [file.relative_to(path).as_posix() for file in inside if file.is_file()]
            shown = [name for name in names if not re.search(r"(^|/)\.", name)]
            text = json.dumps([[name, digest(path / name)] for name in shown])
            return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
        check_file(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
    except (OSError, InputError):
        return "missing"


def check_file(path: Path | str) -> None:
    """Raise `InputError` for a pipe or a device, because most files are read more than once."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device; expected a file")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path, *, inside: bool = True) -> None:
    """Write a file or folder to the disk; with `inside`, also everything in the folder."""
    paths = [path, *path.rglob("*")] if inside else [path]
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
