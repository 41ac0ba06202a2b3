"""The house: every wing of the library imports only from the wings below it."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = (
    "config", "collections", "tokens", "importance", "masking", "models", "training", "pretraining", "finetuning",
    "retrieval", "evaluation", "report", "plan",
)  # fmt: skip
DESCRIBE_THEMSELVES = {("config", "collections")}  # a source says which settings it takes
MODULES = sorted((ROOT / "cdmae").rglob("*.py"))


def floor(module: str) -> str:
    """Name the wing of a module; nothing for the modules at the top, on which all wings stand."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else ""


def imported(path: Path) -> set[str]:
    """Name what a file imports from the library, also inside functions and for type checkers."""
    nodes = ast.walk(ast.parse(path.read_text()))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return {name for name in names if re.match(r"cdmae\b", name)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_wing_imports_only_from_below(path):
    own = floor(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for name in imported(path):
        other = floor(name)
        if other and other != own and (own, other) not in DESCRIBE_THEMSELVES:
            assert own, f"{path.name}, on which all wings stand, imports {name}"
            assert FLOORS.index(other) < FLOORS.index(own), f"{own} imports {name} from above"


def test_every_folder_is_a_wing_and_no_two_modules_have_one_name():
    folders = {
        path.name
        for path in (ROOT / "cdmae").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    }
    assert folders == set(FLOORS)
    classes = ROOT / "cdmae/config"  # a kind's settings have the name of its code
    own = [path for path in MODULES if path.stem != "__init__" and classes not in path.parents]
    names = Counter(path.stem for path in own)
    assert not {name for name, count in names.items() if count > 1}
