"""Outputs that exist only when they are complete, JSON among them; and what to do about one that is damaged."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdmae.errors import InputError


@contextmanager
def complete(path: Path | str) -> Iterator[Path]:
    """Yield a place beside `path` to write a file or a folder to; sync it and rename it to `path` at the end.

    After an error nothing is left behind. The caller creates the file, or calls ``mkdir`` on what is yielded.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    _remove(aside)
    try:
        yield aside
        _sync(aside)
        _remove(path)
        os.replace(aside, path)
        _sync(path.parent, inside=False)
    except BaseException:
        _remove(aside)
        raise


def link(path: Path | str, place: Path | str) -> None:
    """Give a file a second name; where the file system cannot, copy it."""
    try:
        os.link(path, place)
    except OSError:  # another file system, one without hard links, or too many of them
        shutil.copy2(path, place)


def write_text(path: Path | str, text: str) -> None:
    """Write a whole text file, UTF-8."""
    with complete(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write a JSON file, indented, keys in the order given."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path | str) -> Any:
    """Read a JSON file; raises `InputError` where it is not one."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, endless digits or brackets
        raise InputError(f"{path} is not JSON ({error}); {remedy(path)}") from None


def check_file(path: Path | str) -> None:
    """Refuse a pipe, a device or a socket, which may make its reader wait for ever; errors of opening are the reader's.

    A pipe that somebody writes to is refused as well: most files are read more than once.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise InputError(f"{path} is {kind}; allowed: a file")


def remedy(path: Path | str) -> str:
    """Say what to do about a damaged file: what is deleted must be a job's whole output, which may be a folder.

    Snakemake leaves a time stamp in the folders that it knows.
    """
    path = Path(path)
    output = next((folder for folder in path.parents if (folder / ".snakemake_timestamp").exists()), path)
    return f"delete {'it' if output == path else output} and run again"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path, *, inside: bool = True) -> None:
    for place in [path, *(path.rglob("*") if inside else ())]:
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
