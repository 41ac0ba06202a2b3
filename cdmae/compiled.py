"""Functions compiled by numba, kept compiled on disk where there is a place for them, and threads
to run them on.

numba writes beside the source, else to the user's cache, or where ``NUMBA_CACHE_DIR`` says. Where
none can be written (a read-only install, a container without a home) it refuses the function
altogether; here it is then compiled anew in each process, which costs seconds and changes no
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
    """Compile `function` without the interpreter lock, so that plain threads run it side by side."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError as error:  # "cannot cache function ...: no locator available for file ..."
        if "no locator" not in str(error):
            raise
        return numba.njit(nogil=True)(function)


def _prefetch(write: int) -> Callable[..., Any]:
    """Return a function (array [n], index) for compiled code: ask for the cache line of an element,
    at any index.
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
        builder.call(
            function, [address, number(write), number(3), number(1)]
        )  # into all caches; data, not code
        return context.get_dummy_value()

    return intrinsic(typed)


prefetch_to_read, prefetch_to_write = _prefetch(0), _prefetch(1)


class Threads(ThreadPoolExecutor):
    """So many threads, one at least, to run compiled functions on."""

    def __init__(self, number: int) -> None:
        """Start them when there is work."""
        self.number = max(1, number)
        super().__init__(self.number)

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)

    def run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call `function` with the elements of `arguments` in turn; the results in their order."""
        return list(self.map(function, *arguments))

    def stream(self, function: Callable[..., Any], arguments: Iterable[Any]) -> Iterator[Any]:
        """Do the same for what does not fit into memory together: at most two arguments a thread
        are taken ahead.
        """
        waiting: deque[Future] = deque()
        for argument in arguments:
            waiting.append(self.submit(function, argument))
            if len(waiting) > 2 * self.number:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
