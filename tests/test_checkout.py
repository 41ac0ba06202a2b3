"""The checkout: imports between packages, compiled functions, and documents that name what exists."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "languages", "config", "collections", "tokens", "importance", "masking", "models", "training", "pretraining", "finetuning",
    "retrieval", "evaluation", "report", "plan", "proposal", "exporting", "serving", "commands",
)  # fmt: skip
# sources define their own settings; a job's arguments may be tokens
ALLOWED = {("config", "collections"), ("job.py", "tokens")}


def imported(path):
    """Name the packages from which a file imports, also in functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cdmae":
            for alias in node.names:
                yield f"{node.module}.{alias.name}".split(".")[1]


def test_a_package_imports_only_from_packages_before_it():
    """The modules at the top, which all packages use, import from none."""
    folders = {path.parent.name for path in ROOT.glob("cdmae/*/__init__.py")}
    assert folders == set(PACKAGES)
    for path in {*ROOT.glob("cdmae/**/*.py")} - {ROOT / "cdmae/__main__.py"}:
        own = path.relative_to(ROOT / "cdmae").parts[0]
        before = PACKAGES[: PACKAGES.index(own) + 1] if own in PACKAGES else ()
        later = {name for name in imported(path) if name in PACKAGES and name not in before}
        assert {(own, name) for name in later} <= ALLOWED, path


# --- compiled functions ---------------------------------------------------------------------------


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


# --- documents ------------------------------------------------------------------------------------


DOCUMENTS = ["README.md", "CONTRIBUTING.md", *map(str, sorted(ROOT.glob("docs/*.md")))]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_is_named_is_there(document):
    path = ROOT / document
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:cdmae|config|docs|envs|workflow|tests|benchmarks)/[\w./-]*)`", text)
    linked = re.findall(r"\]\(([\w./-]+\.(?:md|png))(?:#[\w-]+)?\)", text)
    files = [*(ROOT / each for each in named), *(path.parent / each for each in linked)]
    assert [str(file) for file in files if not file.exists()] == []
