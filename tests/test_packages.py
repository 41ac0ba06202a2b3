"""Every package of the library imports only from the packages before it in the pipeline."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "config", "collections", "tokens", "importance", "masking", "models", "training", "pretraining", "finetuning",
    "retrieval", "evaluation", "report", "plan", "proposal", "exporting", "serving", "commands",
)  # fmt: skip
DESCRIBE_THEMSELVES = {("config", "collections")}  # sources define their own settings
MODULES = sorted(path for path in (ROOT / "cdmae").rglob("*.py") if path.stem != "__main__")


def package_of(module: str) -> str:
    """Return the package of a module; empty for the modules at the top, which all packages use."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in PACKAGES else ""


def imported(path: Path) -> set[str]:
    """List the imports of a file from the library, also in functions and for type checkers."""
    nodes = ast.walk(ast.parse(path.read_text()))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return {name for name in names if re.match(r"cdmae\b", name)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_imports_only_from_packages_before_it(path):
    own = package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for name in imported(path):
        other = package_of(name)
        if other and other != own and (own, other) not in DESCRIBE_THEMSELVES:
            assert own, f"{path.name}, which all packages use, imports {name}"
            assert PACKAGES.index(other) < PACKAGES.index(own), f"{own} imports {name}"


def test_every_folder_is_a_package():
    folders = {path.name for path in (ROOT / "cdmae").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(PACKAGES)
