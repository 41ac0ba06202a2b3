"""What code a result depends on: module to hash of its syntax tree, for a script and all it imports from the project.

Comments, docstrings, blank lines and formatting do not count, so tidying up restarts nothing; the mapping lets the
workflow name the module that changed. The hash is the same on every supported Python.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = "cdmae"
FOLLOWED = (PACKAGE, "benchmarks")  # a job may measure what a benchmark does
ROOT = Path(__file__).resolve().parent.parent
# Modules that pass values and words but compute no result: what the settings say reaches a job as its parameters.
NEUTRAL = frozenset(
    f"{PACKAGE}.{name}"
    for name in (
        "cli", "config", "config.checks", "config.encoders", "config.pretrained", "config.rankers", "config.schema",
        "config.seeds", "config.systems", "errors", "fields", "layout", "log",
    )
)  # fmt: skip


def fingerprint(script: Path | str, plugins: Iterable[str] = (), *, root: Path | str = ROOT) -> dict[str, str]:
    """Map a script (a path below `root`) and every project module it imports, directly or not, to a short hash.

    `plugins` are modules that the settings name, such as ``cdmae.masking.strategies.importance``, which no import
    statement shows. Imports inside functions count, those for type checkers do not. Raises `FileNotFoundError` for a
    plugin or a script that does not exist.
    """
    root = Path(root)
    hashes = {Path(script).as_posix(): _read(root / script)[0]}
    waiting = [*_modules(_read(root / script)[1], root), *plugins]
    while waiting:
        module = waiting.pop()
        if module in hashes or module in NEUTRAL:
            continue
        path = _path(module, root)
        if path is None:
            raise FileNotFoundError(f"there is no module {module} below {root}")
        hashes[module], names = _read(path)
        package = module.rpartition(".")[0]  # what is imported first, if it has an __init__.py
        waiting += [*([package] if _path(package, root) else []), *_modules(_absolute(names, module, path), root)]
    return {name: hashes[name] for name in sorted(hashes)}


def _path(module: str, root: Path) -> Path | None:
    base = root.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _modules(names: Iterable[str], root: Path) -> Iterator[str]:
    """Return the project's modules among imported names, of which the last part may be a module or something in it."""
    for name in names:
        if name.split(".")[0] in FOLLOWED:
            while _path(name, root) is None and "." in name:
                name = name.rpartition(".")[0]
            yield name


def _absolute(names: Iterable[str], module: str, path: Path) -> Iterator[str]:
    """Relative names (``.bm25``, ``..files``) as seen from a module."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for name in names:
        rest = name.lstrip(".")
        level = len(name) - len(rest)
        yield ".".join([*package[: len(package) - level + 1], rest]).rstrip(".") if level else name


def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    return _parse(path.read_bytes(), str(path))


@functools.cache
def _parse(source: bytes, path: str) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a source file, and the names it imports."""
    tree = ast.parse(source, path)
    return hashlib.sha256(_text(tree).encode()).hexdigest()[:12], tuple(dict.fromkeys(_imports(tree)))


def _text(node: object) -> str:
    """Return a syntax tree as text, without docstrings, positions and fields that are empty or new in some Python."""
    if isinstance(node, list):
        return "[" + ",".join(map(_text, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, []) and name != "ctx"}
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _has_docstring(node):
        fields["body"] = node.body[1:]
    fields.pop("type_ignores", None)
    return f"{type(node).__name__}({','.join(f'{name}={_text(value)}' for name, value in fields.items())})"


def _has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        yield from (module + ("" if module.endswith(".") else ".") + alias.name for alias in node.names)
    else:
        checked = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for child in node.orelse if checked else ast.iter_child_nodes(node):
            yield from _imports(child)
