"""NumPy arrays and Parquet tables in files; what is damaged is an `InputError`.

They stand apart from `cdmae.files` because the workflow starts without NumPy.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdmae.errors import InputError
from cdmae.files import remedy

if TYPE_CHECKING:
    import pandas as pd

# --- arrays of NumPy, .npy ----------------------------------------------------------------------------------------


def read_array(path: Path | str) -> np.ndarray:
    """Read a memory-mapped array; raises `InputError` where the file is damaged."""
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a complete array ({error}); {remedy(path)}") from None


def write_array(path: Path | str, values: np.ndarray) -> None:
    """Write an array as `np.save` does, whose error for a full disk tells how much was written and not what it is."""
    try:
        with open(path, "wb") as file:
            np.save(file, values)
    except OSError as error:
        if error.errno:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None


@contextmanager
def appending(path: Path, dtype: type) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that writes arrays one after the other to the file that `np.save` would write of them joined."""
    length = 0

    def head() -> None:  # always as long: numpy leaves room for any number
        file.seek(0)
        shape = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(file, shape)

    def append(values: np.ndarray) -> None:
        nonlocal length
        file.write(np.ascontiguousarray(values, dtype).data)
        length += len(values)

    with open(path, "wb") as file:
        head()
        yield append
        head()


# --- Parquet: every page has a checksum -----------------------------------------------------------------------------


def open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """Open a file that has the columns of `schema`; raises `InputError` where it is not complete or lacks one."""
    with reading(path):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        columns = file.schema_arrow.names
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise InputError(f"{path} has the columns {columns} and lacks {missing}; delete it and run again")
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
    """Turn what pyarrow raises for a damaged page or footer of `path` into one sentence: an `InputError`."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, OSError) and error.errno:  # the system's, such as a disk that cannot be read
            raise
        raise InputError(f"{path} is damaged ({error}); {remedy(path)}") from None
