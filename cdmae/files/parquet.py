"""Parquet files, every page with a checksum: what is damaged or of another kind is an `InputError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdmae.errors import InputError
from cdmae.files.outputs import remedy

if TYPE_CHECKING:
    import pandas as pd


def open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """Open a file that has the columns of `schema`; raises `InputError` where it is not complete or lacks one."""
    with reading(path):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        found = file.schema_arrow.names
    missing = [name for name in schema.names if name not in found]
    if missing:
        raise InputError(f"{path} has the columns {found} and lacks {missing}; delete it and run again")
    return file


def read_frame(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a file that has the columns of `schema`, whole, all columns."""
    file = open_parquet(path, schema)
    with reading(path):
        return file.read().to_pandas()


def read_batches(file: pq.ParquetFile, path: Path, *arguments: Any) -> Iterator[pa.RecordBatch]:
    """The batches of `file`, read from `path`; `arguments`: of `ParquetFile.iter_batches`."""
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
