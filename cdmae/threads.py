"""Threads for functions that release the interpreter lock, such as compiled ones, and for faiss."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


class Threads(ThreadPoolExecutor):
    """A pool of `number` threads, at least one."""

    def __init__(self, number: int) -> None:
        """Set the number of threads; each starts when it is first needed."""
        self.number = max(1, number)
        super().__init__(self.number)

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)

    def run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call `function` with each element of `arguments`; return the results in order."""
        return list(self.map(function, *arguments))

    def stream(self, function: Callable[..., Any], arguments: Iterable[Any]) -> Iterator[Any]:
        """Yield the results of `function` in order, for arguments that do not fit into memory.

        At most two arguments per thread are in memory at a time.
        """
        pending: deque[Future] = deque()
        for argument in arguments:
            pending.append(self.submit(function, argument))
            if len(pending) > 2 * self.number:
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
