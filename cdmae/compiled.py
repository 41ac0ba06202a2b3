"""Functions compiled by numba, kept compiled on disk where there is a place for them, and threads to run them on.

numba writes beside the source, else to the user's cache, or where ``NUMBA_CACHE_DIR`` says. Where none can be written
(a read-only install, a container without a home) it refuses the function altogether; here it is then compiled anew in
each process, which costs seconds and changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
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


class Threads:
    """So many threads to run compiled functions on; one is the thread that calls."""

    def __init__(self, number: int) -> None:
        """Start at least one."""
        self.number = max(1, number)
        self._pool = ThreadPoolExecutor(self.number) if self.number > 1 else None

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call `function` with the elements of `arguments` in turn; the results in their order."""
        return list((self._pool.map if self._pool is not None else map)(function, *arguments))

    def start(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Call `function` beside what is run next."""
        if self._pool is not None:
            return self._pool.submit(function, *arguments)
        done: Future = Future()
        done.set_result(function(*arguments))
        return done
