"""Map a script, and the project's modules that it imports, to hashes of their syntax trees.

Comments, docstrings, blank lines and formatting do not count: changing them restarts no job. The
mapping lets the workflow name the module that changed. The hashes are the same on every supported
Python.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

from cdmae.errors import InputError, not_python
from cdmae.files import digest

PACKAGE = "cdmae"
FOLLOWED = (PACKAGE,)
ROOT = Path(__file__).resolve().parent.parent
TEXTS = (".j2", ".css", ".js", ".csv")
LEFT_OUT = ("ctx", "type_ignores")  # fields of the syntax tree
# Modules, and packages, that affect no result: jobs receive the settings as parameters.
NEUTRAL = tuple(
    f"{PACKAGE}.{name}"
    for name in ("cli", "config", "errors", "fields", "job", "layout", "log", "terminal")
)
# members of classes of settings that check, describe or plan, and decide no result
NO_RESULT = ("__post_init__", "in_words", "unread")


def fingerprint(
    script: Path | str, plugins: Iterable[str] = (), *, root: Path | str = ROOT
) -> dict[str, str]:
    """Map a script below `root` and every project module that it imports to a short hash.

    `plugins` are modules that the settings name, such as ``cdmae.masking.strategies.importance``,
    which no import statement shows. Imports inside functions count; imports for type checkers do
    not. Raises `FileNotFoundError` for a plugin or a script that does not exist, and `InputError`
    for a file that is not Python.
    """
    root = Path(root)
    hashes: dict[str, str] = {}
    waiting = [Path(script).as_posix(), *plugins]
    while waiting:
        module = waiting.pop()
        if module in hashes or module.startswith(NEUTRAL):
            continue
        path = root / module if module.endswith(".py") else _path(module, root)
        if path is None:
            raise FileNotFoundError(f"there is no module {module} below {root}")
        hashes[module], names = _parse(path.read_bytes(), str(path))
        parent = module.rpartition(".")[0]  # the package, which is imported first
        package = module if path.name == "__init__.py" else parent
        for name in [parent, *(importlib.util.resolve_name(name, package) for name in names)]:
            while name.split(".")[0] in FOLLOWED and _path(name, root) is None:
                name = name.rpartition(".")[0]  # an object in a module
            waiting += [name] if name.split(".")[0] in FOLLOWED else []
    return {name: hashes[name] for name in sorted(hashes)}


def texts(*folders: str, root: Path | str = ROOT) -> dict[str, str]:
    """Map each folder of the project to one hash of the files in it that are not Python.

    These are templates, styles and tables, of which a job reads all that a page needs.
    """
    hashes = {}
    for folder in folders:
        paths = sorted(path for path in Path(root, folder).rglob("*.*") if path.suffix in TEXTS)
        names = (path.relative_to(root).as_posix() for path in paths)
        content = "".join(f"{name} {digest(Path(root, name))}\n" for name in names)
        hashes[folder] = _hash(content)
    return hashes


def executed(kind: type, *, root: Path | str = ROOT) -> dict[str, str]:
    """Map a class of settings, and the classes that it extends, to hashes of what a job executes.

    These are constants, properties and methods, such as the number of ``spans`` of an objective.
    The settings themselves are parameters; checks and descriptions decide no result.
    """
    hashes = {}
    for owner in kind.__mro__:
        if not owner.__module__.startswith(f"{PACKAGE}.config"):
            continue
        path = _path(owner.__module__, Path(root))
        tree = ast.parse(path.read_bytes())
        (found,) = (node for node in tree.body if getattr(node, "name", "") == owner.__qualname__)
        own = [node for node in found.body if not isinstance(node, ast.AnnAssign | ast.Expr)]
        text = "".join(_text(node) for node in own if not _decides_nothing(node))
        hashes[f"{owner.__module__}.{owner.__qualname__}"] = _hash(text)
    return hashes


def _decides_nothing(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node]
    names = [getattr(each, "id", getattr(each, "name", "")) for each in targets]
    return all(name in NO_RESULT or name.startswith("check") for name in names)


def _path(module: str, root: Path) -> Path | None:
    base = root.joinpath(*module.split("."))
    paths = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in paths if path.is_file()), None)


@functools.cache
def _parse(source: bytes, path: str) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a source file, and the names of the modules that it imports."""
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError) as error:  # the latter for null bytes, before Python 3.12
        raise InputError(not_python(path, error)) from None
    return _hash(_text(tree)), tuple(dict.fromkeys(_imports(tree)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _text(node: object) -> str:
    """Write a syntax tree as text.

    Docstrings, positions, empty fields, and fields that only some versions of Python have are
    omitted.
    """
    if isinstance(node, list):
        return "[" + ",".join(map(_text, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    texts = []
    for name, value in ast.iter_fields(node):
        if name in LEFT_OUT or value is None or value == []:
            continue
        if name == "body" and _is_documented(node):
            value = value[1:]
        texts.append(f"{name}={_text(value)}")
    return f"{type(node).__name__}({','.join(texts)})"


def _is_documented(node: ast.AST) -> bool:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None


def _imports(node: ast.AST) -> Iterator[str]:
    """Yield the names that the statements in a node import, but for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = "." * child.level + (f"{child.module}." if child.module else "")
            yield from (module + alias.name for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _imports(ast.Module(child.orelse, []))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _imports(child)
