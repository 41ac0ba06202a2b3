"""Read and write NumPy arrays and Parquet tables; a damaged file is an `InputError`.

This module is separate from `cdmae.files` because the workflow starts without NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdmae.errors import InputError
from cdmae.files import remedy

if TYPE_CHECKING:
    import pandas as pd


def read_array(path: Path | str) -> np.ndarray:
    """Memory-map the array of a .npy file; raise `InputError` if it is truncated."""
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a complete array ({error}); {remedy(path)}") from None


def write_array(path: Path | str, values: np.ndarray) -> None:
    """Write an array as `np.save` does, which reports a full disk by an error without an errno."""
    values = np.ascontiguousarray(values)
    with open(path, "wb") as file:
        _write_header(file, values.dtype, values.shape)
        file.write(values.data)


@contextmanager
def appending(path: Path, dtype: type) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that appends arrays to one file, as `write_array` writes all together."""
    length = 0

    def append(values: np.ndarray) -> None:
        nonlocal length
        file.write(np.ascontiguousarray(values, dtype).data)
        length += len(values)

    with open(path, "wb") as file:
        _write_header(file, np.dtype(dtype), (0,))
        yield append
        file.seek(0)  # NumPy pads headers to the same length
        _write_header(file, np.dtype(dtype), (length,))


def _write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    described = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": described, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


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
