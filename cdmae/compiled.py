"""Functions compiled by numba, kept compiled on disk where there is a place for them.

numba writes beside the source, else to the user's cache, else to ``NUMBA_CACHE_DIR``. Where none can be written (a
read-only install, a container without a home) it refuses the function altogether; here it is then compiled anew in
each process, which costs seconds and changes no result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` without the interpreter lock, so that plain threads run it side by side."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError as error:  # "cannot cache function ...: no locator available for file ..."
        if "no locator" not in str(error):
            raise
        return numba.njit(nogil=True)(function)
