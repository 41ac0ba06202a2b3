"""Threads for functions that release the interpreter lock, such as compiled ones, and for faiss."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


def stream(number: int, function: Callable[..., Any], arguments: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of `function` in order, for arguments that do not fit into memory.

    number: of threads. At most two arguments per thread are in memory at a time.
    """
    pending: deque[Future] = deque()
    with ThreadPoolExecutor(number) as pool:
        for argument in arguments:
            pending.append(pool.submit(function, argument))
            if len(pending) > 2 * number:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


@contextmanager
def faiss_threads(number: int) -> Iterator[None]:
    """Let faiss use `number` threads within the context."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(number)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
