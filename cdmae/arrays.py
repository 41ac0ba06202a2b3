"""Read and write NumPy arrays and Parquet tables; a damaged file is an `InputError`.

This module is separate from `cdmae.files` because the workflow starts without NumPy.
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

# --- NumPy arrays, .npy: a checksum follows the values; other readers ignore it -------------------

_MARK = b"crc32 "
_TRAILER = len(_MARK) + 9  # eight hexadecimal digits and a newline


def read_array(path: Path | str) -> np.ndarray:
    """Check a file against its checksum and memory-map its array.

    Raises `InputError` if the file is damaged.
    """
    with open(path, "rb") as file:
        content = os.fstat(file.fileno()).st_size - _TRAILER  # bytes
        checksum = _checksum(file, content) if content > 0 else 0
        trailer = file.read(_TRAILER)
    if trailer != _trailer(checksum):
        raise InputError(
            f"{path} is not a complete array (its checksum does not match); {remedy(path)}"
        )
    return map_array(path)


def map_array(path: Path | str) -> np.ndarray:
    """Memory-map an array without checking its values; raise `InputError` if it is truncated."""
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a complete array ({error}); {remedy(path)}") from None


def write_array(path: Path | str, values: np.ndarray) -> None:
    """Write an array as `np.save` does, followed by its checksum."""
    values = np.ascontiguousarray(values)
    with _named(path):
        # np.save reports a full disk by an error without an errno
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(
                file, np.lib.format.header_data_from_array_1_0(values)
            )
            file.write(values.data)
        seal(path)


@contextmanager
def appending(path: Path, dtype: type) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that appends arrays to one file, as `write_array` writes all together."""
    length = 0

    def write_header() -> None:  # NumPy pads the header, so its length is the same for any number
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

    # closing writes the rest of the buffer, so its errors must name the file, too
    file = open(path, "wb")  # noqa: SIM115
    try:
        write_header()
        yield append
        write_header()
    finally:
        with _named(path):
            file.close()
    with _named(path):
        seal(path)


def seal(path: Path | str) -> None:
    """Append the checksum that `read_array` checks to a file that NumPy can read."""
    with open(path, "r+b") as file:
        checksum = _checksum(file, os.fstat(file.fileno()).st_size)
        file.seek(0, os.SEEK_END)
        file.write(_trailer(checksum))


def _trailer(checksum: int) -> bytes:
    return _MARK + f"{checksum:08x}\n".encode()


def _checksum(file: BinaryIO, size: int) -> int:
    """Read `size` bytes and return their CRC-32."""
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
    """Add the file's name to system errors, which lack it after a failed write."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


# --- Parquet: every page has a checksum -----------------------------------------------------------


def open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """Open a file that has the columns of `schema`.

    Raises `InputError` if the file is incomplete or lacks a column.
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
    """Read all rows and columns of a file; it must have the columns of `schema`."""
    file = open_parquet(path, schema)
    with reading(path):
        return file.read().to_pandas()


def read_batches(file: pq.ParquetFile, path: Path, *arguments: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `file`, read from `path`; `arguments` are passed to `iter_batches`."""
    with reading(path):
        yield from file.iter_batches(*arguments)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert pyarrow's errors for a damaged page or footer of `path` to `InputError`."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        system_error = isinstance(error, OSError) and error.errno  # such as an unreadable disk
        if system_error:
            raise
        raise InputError(f"{path} is damaged ({error}); {remedy(path)}") from None
