"""Write NumPy arrays in the format of ``np.save``, whole or in parts.

This module is separate from `cdmae.files` because the workflow starts without NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np


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
