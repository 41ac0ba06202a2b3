"""Find the docstrings of installed packages without importing them.

There are two kinds: the docstrings of a source file, and the texts of calls such as
``add_newdoc(module, name, text)``, which document the compiled parts of numpy, scipy and torch.
Modules are visited in the order of their names, and objects in the order of the file. The same
versions of the packages give the same texts under any version of Python.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from cdmae.collections.leakage import stable_share

# Tests, vendored copies, generated files and programs, which do not document the package itself.
_SKIPPED_FOLDERS = re.compile(
    r"__pycache__|tests?|_internal|_?vendor(ed)?(_templates)?|_?externals?|third_party|generated"
    r"|array_api_(compat|extra)|cobyqa|pyprima|.*\..*"
)
_SKIPPED_FILES = re.compile(
    r"(test_.*|.*_tests?|conftest|testing_utils|setup|.*_pb2(_.*)?|dummy_.*_objects)\.py"
)
_GENERATED = re.compile(
    r"auto(matically|-)? ?generated|generated (by|from)|do not edit", re.IGNORECASE
)
_HEAD = 1500  # characters of a file that are searched for a note that it is generated
_ADD_DOC = re.compile(r"_?add_(new)?doc(str)?\w*")


def modules(package: str, share: float = 1.0) -> list[tuple[str, Path]]:
    """List a package's modules and files by name, without tests, vendored copies and programs.

    share: the share of the modules, chosen by a hash of their names.
    """
    (top,) = importlib.util.find_spec(package).submodule_search_locations
    paths = []
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not _SKIPPED_FOLDERS.fullmatch(name)]
        parts = (package, *Path(folder).relative_to(top).parts)
        for file in files:
            stem, suffix = os.path.splitext(file)
            if suffix == ".py" and stem.isidentifier() and not _SKIPPED_FILES.fullmatch(file):
                module = ".".join(parts if stem == "__init__" else (*parts, stem))
                if stable_share(module) < share:
                    paths.append((module, Path(folder, file)))
    return sorted(paths)


def documented_in(module: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the qualified name and the docstring of a module's documented objects.

    Generated or unparsable files yield none.
    """
    source = path.read_text(encoding="utf-8", errors="replace")
    has_docstring = '"""' in source or "'''" in source
    if not has_docstring or _GENERATED.search(source, 0, _HEAD):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in third-party docstrings
            tree = ast.parse(source)
    except (SyntaxError, ValueError):  # templates
        return
    text = ast.get_docstring(tree, clean=False)
    if text:
        yield module, text
    yield from _below(module, tree)


def _below(name: str, parent: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the documented objects in a module or class, also below conditions."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            below = f"{name}.{node.name}"
            text = ast.get_docstring(node, clean=False)
            if text and not _is_special(node.name):
                yield below, text
            if isinstance(node, ast.ClassDef):
                yield from _below(below, node)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _below(name, node)
        elif isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            yield from _added(name, node.value, target)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _added(module: str, call: ast.Call, target: ast.expr | None) -> Iterator[tuple[str, str]]:
    """Yield the objects that a call of the ``add_docstr`` family documents.

    The text is the last argument, perhaps in a pair, or in a list of pairs, with the name of an
    attribute. The other arguments are names; signatures and types among them are left out.
    """
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    if not _ADD_DOC.fullmatch(function) or len(call.args) < 2:
        return
    *arguments, last = call.args
    parts = [_text(argument) or ast.unparse(argument) for argument in arguments]
    parts = [part for part in parts if all(map(str.isidentifier, part.split(".")))]
    if isinstance(target, ast.Name):
        parts = [module, target.id]
    elif function == "add_docstr_all":
        parts = ["torch.Tensor", *parts]
    elif parts and "." not in ".".join(parts):
        parts = [module.rpartition(".")[0], *parts]
    pairs = last.elts if isinstance(last, ast.List) else [last]
    for pair in pairs if parts else ():
        *attribute, text = pair.elts if isinstance(pair, ast.Tuple) else [pair]
        name = ".".join([*parts, *map(_text, attribute)])
        if _text(text) and not _is_special(name.rpartition(".")[2]):
            yield name, _text(text)


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
