"""Compile functions with numba, cached on disk where possible, and run them in threads.

numba caches next to the source, otherwise in the user's cache, or in ``NUMBA_CACHE_DIR``. If it can
write to none of them (a read-only install, a container without a home), it refuses the function.
`compiled` then compiles the function again in each process, which costs seconds and changes no
result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` without the interpreter lock, so that threads run it in parallel."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError as error:  # "cannot cache function ...: no locator available for file ..."
        if "no locator" not in str(error):
            raise
        return numba.njit(nogil=True)(function)


def _prefetch(write: int) -> Callable[..., Any]:
    """Return a compiled function (array [n], index) that prefetches an element's cache line.

    The index may be out of bounds.
    """

    def typed(_: Any, array: types.Array, index: types.Integer) -> tuple[Any, Callable[..., Any]]:
        return types.void(array, types.intp), generate

    def generate(
        context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[Any, Any]
    ) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        address = builder.bitcast(builder.gep(array.data, [values[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        into_all_caches = number(3)
        data = number(1)  # not instructions
        builder.call(function, [address, number(write), into_all_caches, data])
        return context.get_dummy_value()

    return intrinsic(typed)


prefetch_to_read = _prefetch(0)
prefetch_to_write = _prefetch(1)


class Threads(ThreadPoolExecutor):
    """At least one thread, `number` in all, that run compiled functions."""

    def __init__(self, number: int) -> None:
        """Set the number of threads; they start with the first work."""
        self.number = max(1, number)
        super().__init__(self.number)

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)

    def run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call `function` with the elements of `arguments` in turn; return the results in order."""
        return list(self.map(function, *arguments))

    def stream(self, function: Callable[..., Any], arguments: Iterable[Any]) -> Iterator[Any]:
        """Yield the results of `function` in order, for arguments too large for memory together.

        At most two arguments per thread are taken ahead.
        """
        waiting: deque[Future] = deque()
        for argument in arguments:
            waiting.append(self.submit(function, argument))
            if len(waiting) > 2 * self.number:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
