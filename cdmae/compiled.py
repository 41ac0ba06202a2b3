"""Compile functions with numba, cached on disk where possible.

numba writes its cache next to the source, to the user's cache folder, or to ``NUMBA_CACHE_DIR``. If
it can write to none of them (a read-only install, a container without a home), it raises an error.
`compiled` then compiles without a cache. This takes seconds in each process and does not change the
results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numba


def compiled(
    function: Callable[..., Any] | None = None, *, fastmath: Collection[str] = ()
) -> Callable[..., Any]:
    """Compile `function`; it releases the interpreter lock, and threads run it in parallel.

    fastmath: LLVM's flags for its floating-point operations; without `function`, the result is a
    decorator.
    """
    if function is None:
        return partial(compiled, fastmath=fastmath)
    options: dict[str, Any] = {"nogil": True}
    if fastmath:
        options["fastmath"] = set(fastmath)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:  # "cannot cache function ...: no locator available for file ..."
        if "no locator" not in str(error):
            raise
        return numba.njit(**options)(function)
