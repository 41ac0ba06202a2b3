"""Every package of the library imports only from the packages before it in the pipeline."""

import ast
from pathlib import Path

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
