"""Compiled functions: they work without a cache on disk, and the cache is never out of date."""

import importlib
import pkgutil

import numba
import pytest
from numba.core.dispatcher import Dispatcher

import cdmae
from cdmae.compiled import compiled


def test_functions_are_compiled_without_a_cache_and_other_errors_are_raised(monkeypatch):
    njit = numba.njit

    def refuse(*arguments, **options):
        if options.get("cache"):
            raise RuntimeError(
                "cannot cache function 'double': no locator available for file 'x.py'"
            )
        return njit(*arguments, **options)

    monkeypatch.setattr(numba, "njit", refuse)

    @compiled
    def double(number):
        return 2 * number

    assert double(21) == 42

    def refuse(*arguments, **options):
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", refuse)
    with pytest.raises(RuntimeError, match="something else"):
        compiled(abs)


def test_compiled_functions_call_only_functions_of_their_own_file():
    """numba's cache notices changes of a function's own file, not of the files that it calls."""
    found = 0
    for module in ("tokens", "importance", "masking", "masking.strategies"):
        package = importlib.import_module(f"cdmae.{module}")
        names = [
            f"cdmae.{module}.{each.name}"
            for each in pkgutil.iter_modules(getattr(package, "__path__", []))
        ]
        for each in [package, *map(importlib.import_module, names)]:
            for function in vars(each).values():
                if (
                    isinstance(function, Dispatcher)
                    and function.py_func.__module__ == each.__name__
                ):
                    found += 1
                    for name in function.py_func.__code__.co_names:
                        called = vars(each).get(name)
                        assert (
                            not isinstance(called, Dispatcher)
                            or called.py_func.__module__ == each.__name__
                        ), name
    assert found > 15
    assert cdmae.__path__
