"""What the workflow reads of Snakemake without a promise of its documentation."""

import ast
import re
from pathlib import Path

import snakemake

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_of_snakemake_for_which_workflow_engine_was_written():
    """After an update, run the tests of the rules and of the workflow, then change this number."""
    assert snakemake.__version__ == "9.27.1"


def test_private_attributes_of_snakemake_are_read_in_two_places():
    """In workflow/engine.py none is private; `dry_run` plans without running, which no API does."""
    found = set()
    for path in (ROOT / "workflow").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
                found.add((path.name, node.attr))
    assert found == {
        ("dry_run.py", "_workflow"),
        ("dry_run.py", "_prepare_dag"),
        ("dry_run.py", "_build_dag"),
    }
