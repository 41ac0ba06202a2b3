"""Check the files of a model's weights: whether they are complete, and the shapes inside.

Standard library only, because these checks run whenever the workflow starts. Only the header of a
safetensors file is read. A pickle is not opened, because opening it may run code.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any, NamedTuple

NAMES = (  # in the order in which loaders prefer them
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)  # fmt: skip
# the content that Git LFS leaves instead of a large file that was not downloaded
POINTER = b"version https://git-lfs"
LONGEST_HEADER = 100_000_000  # bytes, as in the library safetensors
WIDTHS = {  # bytes per number; the library has more types, and checks them itself
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2,
    "U16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
MOST_DIMENSIONS = 64  # the most dimensions of a weight
NARROWEST = 2  # bytes of the smallest number type that can be read
FLOATS = ("F64", "F32", "F16", "BF16")  # types of weights that a network can have here


class Weight(NamedTuple):
    """A weight as a header describes it."""

    dtype: str
    shape: tuple[int, ...]


class Damaged(ValueError):
    """A file that cannot be read in its format; the message begins with its name."""


def find(folder: Path) -> Path | None:
    """Return the file of a model's weights, or the index of several files; None without either."""
    paths = [folder / name for name in NAMES]
    return next((path for path in paths if path.exists() or path.is_symlink()), None)


def read(path: Path) -> dict[str, Weight] | None:
    """Return a model's weights by name; None for pickles. `path` is the result of `find`.

    Raises `Damaged` for files that no loader can read.
    """
    weights: dict[str, Weight] = {}
    for file in files_of(path):
        check_file(file)
        if ".bin" in path.name:
            _check_pickle(file)
        else:
            weights |= _read_header(file)
    return None if ".bin" in path.name else weights


def files_of(path: Path) -> list[Path]:
    """List the files with weights: `path`, or the files of an index.

    Raises `Damaged` for a wrong index.
    """
    check_file(path)
    if path.suffix != ".json":
        return [path]
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path.name} is not JSON ({error})") from None
    names = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise Damaged(f"{path.name} has no weight_map that names a file for each weight")
    for name in sorted(set(names.values())):
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            raise Damaged(
                f"{path.name} names {json.dumps(name)}, a file outside of the model's folder"
            )
    return [path.parent / name for name in sorted(set(names.values()))]


def check_file(path: Path) -> None:
    """Raise `Damaged` unless a file exists, has content, and is no Git LFS pointer."""
    if path.is_dir():
        raise Damaged(f"{path.name} is a folder")
    if path.exists() and not path.is_file():
        raise Damaged(f"{path.name} is not a regular file")
    if not path.exists():
        raise Damaged(
            f"{path.name} is "
            f"{'a link to a file that does not exist' if path.is_symlink() else 'missing'}"
        )
    with path.open("rb") as file:
        head = file.read(len(POINTER))
    if not head:
        raise Damaged(f"{path.name} is empty (0 bytes)")
    if head == POINTER:
        raise Damaged(
            f"{path.name} is a pointer of Git LFS and not the file itself; run `git lfs pull` in "
            "the folder"
        )


def _read_header(path: Path) -> dict[str, Weight]:
    """Return the weights in a safetensors file; refuse a length that contradicts its header."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else size
        if length > min(LONGEST_HEADER, size - 8):
            raise Damaged(
                f"{path.name} is cut, or not in the format of safetensors ({size:,} bytes)"
            )
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError):
            header = None
    if not isinstance(header, dict):
        raise Damaged(
            f"{path.name} is not in the format of safetensors: its header is not a JSON object"
        )
    header.pop("__metadata__", None)
    spans = []
    for name, entry in header.items():
        if not _is_tensor(entry):
            raise Damaged(
                f"{path.name} is damaged: its header describes {json.dumps(name)} wrongly"
            )
        spans.append(entry["data_offsets"])
    end = 0
    for begin, behind in sorted(spans):
        if begin != end:
            raise Damaged(f"{path.name} is damaged: its weights overlap, or have gaps between them")
        end = behind
    if end != size - 8 - length:
        raise Damaged(
            f"{path.name} is cut or damaged: it should have {8 + length + end:,} bytes, and has "
            f"{size:,}"
        )
    return {name: Weight(entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}


def _is_tensor(entry: Any) -> bool:
    """Return whether a header's entry has a type, a shape, and a span of bytes of their length."""
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        return False
    shape = entry.get("shape")
    span = entry.get("data_offsets")
    if not _are_sizes(shape) or not _are_sizes(span) or len(span) != 2:
        return False
    length = span[1] - span[0]
    width = WIDTHS.get(entry["dtype"])
    return length == math.prod(shape) * width if width else length >= 0


def _are_sizes(values: Any) -> bool:
    if not isinstance(values, list) or len(values) > MOST_DIMENSIONS:
        return False
    return all(type(value) is int and 0 <= value < 2**63 for value in values)


def _check_pickle(path: Path) -> None:
    """Raise `Damaged` unless a file begins as PyTorch's files do, and its archive is complete."""
    with path.open("rb") as file:
        head = file.read(2)
    if head == b"PK" and not zipfile.is_zipfile(path):
        raise Damaged(
            f"{path.name} is cut or damaged: it has no end of an archive ({path.stat().st_size:,} "
            "bytes)"
        )
    if head != b"PK" and head[:1] != b"\x80":
        raise Damaged(f"{path.name} is not a file of PyTorch's weights")


def size_of(paths: Iterable[Path]) -> int:
    """Return the total bytes of some files."""
    return sum(path.stat().st_size for path in paths)
