"""Find the docstrings of installed packages without importing them.

There are three kinds of documentation:

- the docstrings of a source file, read with ``ast``
- calls such as ``add_newdoc(module, name, text)``, which document the compiled parts of numpy,
  scipy and torch, read from the same syntax tree
- the C modules of the standard library, which have no source: only these are imported

Modules are visited in the order of their names, and objects in the order of the file: every harvest
gives the same result. The seven in-domain packages take about 25 cpu-s in parallel processes,
nearly all of it for ``ast.parse``.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import multiprocessing
import os
import re
import sys
import sysconfig
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cdmae.collections.leakage import stable_share
from cdmae.errors import InputError

STDLIB = "python"  # the name of the standard library in the config and in passage ids
# import name -> name in the package index, where they differ
DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn"}

# Tests, vendored copies, generated files and programs, which do not document the package itself;
# and tkinter, which is missing from many builds of Python, so that the collection would vary.
_SKIPPED_FOLDERS = re.compile(
    r"^(__pycache__|site-packages|dist-packages|tests?|_internal|_?vendor(ed)?(_templates)?|_?externals?|third_party|generated"
    r"|array_api_(compat|extra)|cobyqa|pyprima|lib2to3|idlelib|turtledemo|tkinter|ensurepip|pydoc_data|lib-dynload|config-.*"
    r"|.*\..*)$"
)
_SKIPPED_FILES = re.compile(
    r"^(test_.*|.*_tests?|conftest|testing_utils|setup|.*_pb2(_.*)?|dummy_.*_objects|antigravity|this)\.py$"
)
_GENERATED = re.compile(
    r"auto(matically|-)? ?generated|generated (by|from)|do not edit", re.IGNORECASE
)
_FILES = 16  # files per task of a process
_HEAD = 1500  # characters of a file that are searched for a note that it is generated

_ADD_DOC = re.compile(r"^_?add_(new)?doc(str)?\w*$")
# C modules for CPython's own tests, and modules whose import has side effects.
_SKIPPED_C_MODULES = re.compile(
    r"^(_test.*|_xx.*|xx.*|_ctypes_test|_interp.*|_sysconfig.*|nt|winreg|_winapi|msvcrt|_tkinter)$"
)


@dataclass(frozen=True)
class Documented:
    """A documented object: its qualified name, such as ``numpy.linalg.solve``, and docstring."""

    name: str
    docstring: str


def harvest(
    package: str,
    within: tuple[str, ...] = (),
    share: float = 1.0,
    over: Callable[..., Iterable[Any]] = map,
) -> Iterator[Documented]:
    """Yield the documented objects of `package`, without duplicate names.

    within: names of the modules to read, with their submodules (empty: all). share: the share of
    the modules to read, chosen by a hash of their names. over: ``map``, or an equivalent that uses
    several processes. `STDLIB` is the standard library with its C modules.
    """

    def is_chosen(module: str) -> bool:
        return not within or any(module == name or module.startswith(name + ".") for name in within)

    chosen = [
        (module, path)
        for module, path in modules(package)
        if is_chosen(module) and stable_share(module) < share
    ]
    objects = chain.from_iterable(over(documented_in, chosen))
    if package == STDLIB:
        names = filter(is_chosen, sorted(sys.stdlib_module_names))
        objects = chain(objects, *map(_documented_c, names))
    seen: set[str] = set()
    for documented in objects:
        if documented.name not in seen:
            seen.add(documented.name)
            yield documented


@contextlib.contextmanager
def processes(number: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a ``map`` that uses `number` processes, or the built-in ``map`` for one."""
    if number == 1:
        yield map
        return
    pool = ProcessPoolExecutor(
        number, multiprocessing.get_context("spawn"), initializer=_end_with_parent
    )
    try:
        yield functools.partial(pool.map, chunksize=_FILES)
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """End with the parent process; otherwise its pool would wait forever after a kill."""

    def watch() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- source files ---------------------------------------------------------------------------------


def root(package: str) -> Path:
    """Return the folder of an installed package, found without importing it."""
    if package == STDLIB:
        return Path(sysconfig.get_paths()["stdlib"])
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = DISTRIBUTIONS.get(package, package)
        raise InputError(
            f"the package {name} is not installed in this environment; install it or drop it"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def modules(package: str) -> list[tuple[str, Path]]:
    """List a package's modules and files by name, without tests, vendored copies and programs."""
    top = root(package)
    prefix = () if package == STDLIB else (package,)
    paths = []
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not _SKIPPED_FOLDERS.match(name)]
        parts = prefix + Path(folder).relative_to(top).parts
        for file in files:
            stem, suffix = os.path.splitext(file)
            if suffix == ".py" and stem.isidentifier() and not _SKIPPED_FILES.match(file):
                module = parts if stem == "__init__" else (*parts, stem)
                paths.append((".".join(module), Path(folder, file)))
    return sorted(paths)


def documented_in(module: tuple[str, Path]) -> list[Documented]:
    """List a module's documented objects; generated or unparsable files yield none."""
    name, path = module
    source = path.read_text(encoding="utf-8", errors="replace")
    has_docstring = '"""' in source or "'''" in source
    if not has_docstring or _GENERATED.search(source, 0, _HEAD):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in third-party docstrings
            tree = ast.parse(source)
    except (SyntaxError, ValueError):  # templates and files for another Python version
        return []
    text = ast.get_docstring(tree, clean=False)
    of_module = [Documented(name, text)] if text else []
    return [*of_module, *_documented_below(name, tree.body)]


def _documented_below(name: str, body: list[ast.stmt]) -> Iterator[Documented]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            below = f"{name}.{node.name}"
            text = None if _is_special(node.name) else ast.get_docstring(node, clean=False)
            if text:
                yield Documented(below, text)
            if isinstance(node, ast.ClassDef):
                yield from _documented_below(below, node.body)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for branch in ("body", "handlers", "orelse", "finalbody"):
                for child in getattr(node, branch, []):
                    body = child.body if isinstance(child, ast.ExceptHandler) else [child]
                    yield from _documented_below(name, body)
        elif isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            yield from _added(name, node.value, target)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


# --- calls that document compiled objects ---------------------------------------------------------


def _added(module: str, call: ast.Call, target: ast.expr | None) -> Iterator[Documented]:
    """Yield the objects that a call of the ``add_docstr`` family documents.

    Supported forms: ``add_newdoc("numpy", "ndarray", ("flat", text))``, ``add_newdoc("numpy",
    "ndarray", text)``, ``add_newdoc("erf", text)``, ``add_docstr(torch.abs, text)``,
    ``add_docstr_all("abs", text)`` (of the tensor class) and ``det =
    _add_docstr(_linalg.linalg_det, text)``.
    """
    function = call.func
    is_method = isinstance(function, ast.Attribute)
    function_name = function.attr if is_method else getattr(function, "id", "")
    if not _ADD_DOC.match(function_name) or len(call.args) < 2:
        return
    *names, last = call.args
    if isinstance(target, ast.Name):
        name = f"{module}.{target.id}"
    elif function_name == "add_docstr_all":
        name = f"torch.Tensor.{_text(names[0])}"
    else:
        parts = [_text(argument) or ast.unparse(argument) for argument in names]
        # leave out signatures and types
        parts = [part for part in parts if all(map(str.isidentifier, part.split(".")))]
        if not parts:
            return
        name = ".".join(parts)
        if "." not in name:
            package = module.rpartition(".")[0]
            name = f"{package}.{name}"
    for attribute, text in _texts(last):
        below = f"{name}.{attribute}" if attribute else name
        if not _is_special(below.rpartition(".")[2]):
            yield Documented(below, text)


def _texts(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield (attribute, text) pairs of the last argument: a text, a pair, or a list of pairs."""
    if isinstance(node, ast.List):
        for element in node.elts:
            yield from _texts(element)
    elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
        attribute, text = map(_text, node.elts)
        if attribute and text:
            yield attribute, text
    else:
        text = _text(node)
        if text:
            yield "", text


def _text(node: ast.expr) -> str:
    """Return the string of an expression of literals, ``+``, ``%`` and method calls.

    Placeholders are not filled in.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.BinOp):
        left = _text(node.left)
        return left + _text(node.right) if isinstance(node.op, ast.Add) else left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _text(node.func.value)
    return ""


# --- the standard library's C modules -------------------------------------------------------------


def _documented_c(name: str) -> Iterator[Documented]:
    """Yield the documented objects of a module without source: a built-in or an extension."""
    loader = getattr(importlib.machinery.PathFinder.find_spec(name), "loader", None)
    is_c = name in sys.builtin_module_names or isinstance(
        loader, importlib.machinery.ExtensionFileLoader
    )
    if not is_c or _SKIPPED_C_MODULES.match(name):
        return
    try:
        module = importlib.import_module(name)
    except ImportError:  # built without the library it wraps
        return
    if isinstance(module.__doc__, str):
        yield Documented(name, module.__doc__)
    yield from _members(name, module)


def _members(name: str, owner: object) -> Iterator[Documented]:
    for attribute, value in sorted(vars(owner).items()):
        is_class = inspect.isclass(value)
        described = is_class or inspect.isroutine(value) or inspect.isdatadescriptor(value)
        # Modules re-export objects of other modules (`_io.open` is `open`); passages with identical
        # bodies are joined later.
        if not described or _is_special(attribute):
            continue
        text = vars(value).get("__doc__") if is_class else getattr(value, "__doc__", None)
        below = f"{name}.{attribute}"
        if isinstance(text, str):
            yield Documented(below, text)
        if is_class and not inspect.isclass(owner):
            yield from _members(below, value)
