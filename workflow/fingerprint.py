"""Hashes of what a result depends on besides its inputs and settings.

These are the project's modules, templates and tables, and the user's files. Snakemake records the
hashes as parameters of a job, and runs the job again if one of them has changed.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import textwrap
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cdmae.files import digest

PACKAGE = "cdmae"
ROOT = Path(__file__).resolve().parent.parent
ASSETS = (".j2", ".css", ".js", ".csv")
# modules that affect no result
NEUTRAL = tuple(
    f"{PACKAGE}.{name}" for name in ("cli", "errors", "fields", "job", "layout", "log", "terminal")
)
CONFIG = f"{PACKAGE}.config."
# functions of the config, and members of its classes, that check, describe or plan only
NO_RESULT = ("__post_init__", "check", "unread")
CONTENT = "content of "  # of the keys of users' files


@cache
def executed(*sources: str | type) -> dict[str, str]:
    """Map what a job executes to hashes: modules with all that they import, and settings.

    sources: names of scripts and modules, and classes of settings, in which constants, properties
    and methods count, such as the number of ``spans`` of an objective. Settings themselves are
    parameters. Imports inside functions count; comments, docstrings, formatting and imports for
    type checkers do not. Functions and constants of the config count where they are imported; what
    they import does not.
    """
    hashes: dict[str, str] = {}
    waiting = [source for source in sources if isinstance(source, str)]
    waiting = [f"workflow.scripts.{name}" if name.isidentifier() else name for name in waiting]
    while waiting:
        name = waiting.pop()
        if name in hashes or name.startswith(NEUTRAL):
            continue
        hashes[name], imported = _of_config(name) if name.startswith(CONFIG) else _module(name)
        waiting += imported
    for kind in sources:
        for owner in () if isinstance(kind, str) else kind.__mro__:
            if owner.__module__.startswith(CONFIG):
                hashes[f"{owner.__module__}.{owner.__qualname__}"] = _settings(owner)
    return {name: hashes[name] for name in sorted(hashes) if hashes[name]}


@cache
def _module(name: str) -> tuple[str, list[str]]:
    """Return the hash of a module, and the modules of the project that it imports."""
    path = _path(name)
    tree = _Executed().visit(ast.parse(path.read_bytes(), str(path)))
    parent = name.rpartition(".")[0]  # the package, which is imported first
    package = name if path.name == "__init__.py" else parent
    found = [parent]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (f"{node.module}." if node.module else "")
            found += [module + alias.name for alias in node.names]
    absolute = [importlib.util.resolve_name(each, package) for each in found]
    own = [each for each in absolute if each.split(".")[0] == PACKAGE]
    modules = []
    for each in own:
        is_object = not each.startswith(CONFIG) and not _path(each).exists()
        modules.append(each.rpartition(".")[0] if is_object else each)
    return _hash(ast.unparse(tree)), modules


def _of_config(name: str) -> tuple[str, list[str]]:
    """Return the hash of a module of the config without its classes, or of one object in it."""
    module = name if _path(name).exists() else name.rpartition(".")[0]
    nodes = _Executed().visit(ast.parse(_path(module).read_bytes())).body
    if module != name:
        nodes = [node for node in nodes if name.removeprefix(f"{module}.") in _names(node)]
    left_out = ast.ClassDef | ast.Import | ast.ImportFrom
    own = [node for node in nodes if not isinstance(node, left_out)]
    return _decisive(own) if own else "", []


def _settings(owner: type) -> str:
    """Return the hash of what a job executes of a class of settings itself."""
    tree = _Executed().visit(ast.parse(textwrap.dedent(inspect.getsource(owner))))
    nodes = tree.body[0].body
    return _decisive(node for node in nodes if not isinstance(node, ast.AnnAssign))


def _decisive(nodes: Iterable[ast.stmt]) -> str:
    """Return the hash of the statements that decide results."""
    own = [ast.unparse(node) for node in nodes if not _names(node)[0].startswith(NO_RESULT)]
    return _hash("\n".join(own))


def _names(node: ast.stmt) -> list[str]:
    """List the names that a statement defines; one that defines none has an empty name."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    return [getattr(each, "id", getattr(each, "name", "")) for each in targets]


class _Executed(ast.NodeTransformer):
    """Drops docstrings, and what only type checkers read."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:  # noqa: N802 (the name that ast calls)
        return None if isinstance(node.value, ast.Constant) else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:  # noqa: N802
        self.generic_visit(node)
        return node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else node


def _path(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return path if path.exists() else path.with_suffix("") / "__init__.py"


def assets(paths: Iterable[str]) -> dict[str, str]:
    """Map each file, or folder, of the project to one hash of its templates, styles and tables."""
    hashes = {}
    for path in paths:
        files = [Path(ROOT, path)] if Path(path).suffix else Path(ROOT, path).rglob("*.*")
        found = sorted(file for file in files if file.suffix in ASSETS)
        hashes[path] = _hash(str([(file.name, digest(file)) for file in found]))
    return hashes


def contents(paths: Iterable[str]) -> dict[str, str]:
    """Map ``content of PATH`` to the digest of each of the user's files, or of each folder.

    Snakemake compares files by time. It would miss a table that an older one replaced (`mv`,
    `cp -p`, archives and backups keep times), and repeat every training after a `touch`.
    """
    return {f"{CONTENT}{path}": _content(path) for path in sorted(set(map(str, paths)))}


_content = cache(digest)  # several jobs read the same file


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
