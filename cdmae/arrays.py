"""NumPy arrays and Parquet tables in files; what is damaged is an `InputError`.

They stand apart from `cdmae.files` because the workflow starts without NumPy.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdmae.errors import InputError
from cdmae.files import remedy

if TYPE_CHECKING:
    import pandas as pd

# --- arrays of NumPy, .npy: behind the values there is a checksum, which other readers pass over --

_MARK = b"crc32 "
_TRAILER = len(_MARK) + 9  # eight hexadecimal digits and a newline


def read_array(path: Path | str) -> np.ndarray:
    """Check a file against its checksum and memory-map its array; raises `InputError` where it is
    damaged.
    """
    with open(path, "rb") as file:
        whole = os.fstat(file.fileno()).st_size - _TRAILER
        checksum = _checksum(file, whole) if whole > 0 else 0
        trailer = file.read(_TRAILER)
    if trailer != _trailer(checksum):
        raise InputError(
            f"{path} is not a complete array (its checksum does not match); {remedy(path)}"
        )
    return map_array(path)


def map_array(path: Path | str) -> np.ndarray:
    """Memory-map an array without checking its values; raises `InputError` where the file is cut."""
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a complete array ({error}); {remedy(path)}") from None


def write_array(path: Path | str, values: np.ndarray) -> None:
    """Write an array as `np.save` does, and its checksum."""
    values = np.ascontiguousarray(values)
    with _named(path):
        with open(path, "wb") as file:  # not by np.save, whose error for a full disk has no number
            np.lib.format.write_array_header_1_0(
                file, np.lib.format.header_data_from_array_1_0(values)
            )
            file.write(values.data)
        seal(path)


@contextmanager
def appending(path: Path, dtype: type) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that writes arrays one after the other to the file that `write_array` would
    write of all.
    """
    length = 0

    def head() -> None:  # always as long: numpy leaves room for any number
        file.seek(0)
        shape = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
            "fortran_order": False,
            "shape": (length,),
        }
        np.lib.format.write_array_header_1_0(file, shape)

    def append(values: np.ndarray) -> None:
        nonlocal length
        with _named(path):
            file.write(np.ascontiguousarray(values, dtype).data)
        length += len(values)

    file = open(path, "wb")  # noqa: SIM115 (closing writes what is left, and errors of that are named, too)
    try:
        head()
        yield append
        head()
    finally:
        with _named(path):
            file.close()
    with _named(path):
        seal(path)


def seal(path: Path | str) -> None:
    """Append the checksum that `read_array` asks for to a file that NumPy can read."""
    with open(path, "r+b") as file:
        checksum = _checksum(file, os.fstat(file.fileno()).st_size)
        file.seek(0, os.SEEK_END)
        file.write(_trailer(checksum))


def _trailer(checksum: int) -> bytes:
    return _MARK + f"{checksum:08x}\n".encode()


def _checksum(file: BinaryIO, size: int) -> int:
    """Read so many bytes and return their CRC-32."""
    value = 0
    while size > 0:
        block = file.read(min(size, 1 << 20))
        if not block:
            break
        value = zlib.crc32(block, value)
        size -= len(block)
    return value


@contextmanager
def _named(path: Path | str) -> Iterator[None]:
    """Name the file in errors of the system, which writing leaves out."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


# --- Parquet: every page has a checksum -----------------------------------------------------------


def open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """Open a file that has the columns of `schema`; raises `InputError` where it is not complete or
    lacks one.
    """
    with reading(path):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        columns = file.schema_arrow.names
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise InputError(
            f"{path} has the columns {columns} and lacks {missing}; delete it and run again"
        )
    return file


def read_frame(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a file that has the columns of `schema`, whole, all columns."""
    file = open_parquet(path, schema)
    with reading(path):
        return file.read().to_pandas()


def read_batches(file: pq.ParquetFile, path: Path, *arguments: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `file`, read from `path`; `arguments`: of `ParquetFile.iter_batches`."""
    with reading(path):
        yield from file.iter_batches(*arguments)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what pyarrow raises for a damaged page or footer of `path` into one sentence: an
    `InputError`.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        if (
            isinstance(error, OSError) and error.errno
        ):  # the system's, such as a disk that cannot be read
            raise
        raise InputError(f"{path} is damaged ({error}); {remedy(path)}") from None
