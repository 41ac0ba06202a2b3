"""Compiled functions: their cache on disk is never out of date."""

import importlib
import pkgutil

from numba.core.dispatcher import Dispatcher


def test_compiled_functions_call_only_functions_of_their_own_file():
    """numba's cache notices changes of a function's own file, not of the files that it calls."""
    found = 0
    for module in ("tokens", "importance", "masking", "masking.strategies"):
        package = importlib.import_module(f"cdmae.{module}")
        below = pkgutil.iter_modules(package.__path__, f"cdmae.{module}.")
        for each in [package, *(importlib.import_module(info.name) for info in below)]:
            functions = {
                name: value for name, value in vars(each).items() if isinstance(value, Dispatcher)
            }
            own = {
                name
                for name, value in functions.items()
                if value.py_func.__module__ == each.__name__
            }
            found += len(own)
            for name in own:
                called = functions.keys() & set(functions[name].py_func.__code__.co_names)
                assert called <= own, (each.__name__, name)
    assert found
