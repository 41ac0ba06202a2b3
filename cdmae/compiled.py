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
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


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


def _prefetch(write: int) -> Callable[..., Any]:
    """Return a compiled function (array [n], index) that prefetches an element's cache line.

    The index may be out of bounds.
    """

    def generate(
        context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[Any, Any]
    ) -> Any:
        """Emit LLVM's ``prefetch(address, write, locality, is_data)``."""
        array_type, _ = signature.args
        array, index = arguments
        data = context.make_array(array_type)(context, builder, array).data
        address = builder.bitcast(builder.gep(data, [index]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        locality = number(3)  # the locality: keep the line in all caches
        is_data = number(1)
        builder.call(prefetch, [address, number(write), locality, is_data])
        return context.get_dummy_value()

    def typed(_: Any, array: types.Array, index: types.Integer) -> tuple[Any, Callable[..., Any]]:
        return types.void(array, types.intp), generate

    return intrinsic(typed)


prefetch_to_read = _prefetch(0)
prefetch_to_write = _prefetch(1)
