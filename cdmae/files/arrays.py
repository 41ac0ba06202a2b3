"""Files of NumPy's, ``.npy``: memory-mapped, and written whole or part by part."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cdmae.errors import InputError
from cdmae.files.outputs import remedy


def read_array(path: Path | str) -> np.ndarray:
    """A memory-mapped array; raises `InputError` where the file is damaged."""
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
def appending(path: Path, kind: type) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that writes arrays one after the other to the file that `np.save` would write of them joined."""
    length = 0

    def head() -> None:  # always as long: numpy leaves room for any number
        file.seek(0)
        shape = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(file, shape)

    def append(values: np.ndarray) -> None:
        nonlocal length
        file.write(np.ascontiguousarray(values, kind).data)
        length += len(values)

    with open(path, "wb") as file:
        head()
        yield append
        head()
