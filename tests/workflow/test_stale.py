"""The user's files count by content, in a run of a collection, its tokenizer and its tokens."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.workflow.conftest import ROOT, Checkout

pytestmark = pytest.mark.workflow

CONFIG = """
standalone: true
results: results/own
collection: mine
collections:
  mine: {source: pairs, path: data/train.jsonl, holdout: {dev: 0.1, test: 0.1}}
starts:
  small: {vocabulary: 300, layers: 1, hidden: 8, heads: 2}
"""
TARGET = "results/own/tokens/small/mine"
ALL = Counter(["collection mine", "tokenizer small", "tokens small,mine"])


def write(path, rows):
    """Write a table of more than 1 MB: Snakemake compares smaller inputs by checksums, too."""
    path.parent.mkdir(exist_ok=True)
    text = "word " * 2000
    pairs = [{"query": f"query {row}", "positive": f"passage {row} {text}"} for row in range(rows)]
    path.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    assert path.stat().st_size > 2**20


def test_another_table_is_another_run_and_a_new_time_is_none(tmp_path):
    """Nor is the text of a rule, or the time of a script, also for a bare `snakemake`."""
    fresh = Checkout.of(ROOT, tmp_path / "checkout")
    (fresh.folder / "own.yaml").write_text(CONFIG)
    table, newer = fresh.folder / "data/train.jsonl", fresh.folder / "data/part"
    write(table, 200)
    assert fresh.jobs("--configfile", "own.yaml", TARGET) == ALL

    os.utime(table)
    fresh.edit("workflow/rules/data.smk", "priority: 100", "priority: 99")
    (fresh.folder / "workflow/scripts/collection.py").touch()
    bare = [sys.executable, "-m", "snakemake", "-n", "--configfile", "own.yaml", "--", TARGET]
    said = subprocess.run(bare, cwd=fresh.folder, capture_output=True, text=True, check=True)
    assert "Nothing to be done" in said.stdout + said.stderr

    write(newer, 150)
    os.utime(newer, (0, 0))
    os.replace(newer, table)
    assert fresh.jobs("--configfile", "own.yaml", TARGET) == ALL
    assert "reason: content of data/train.jsonl\n" in fresh.said
    about = json.loads((fresh.folder / "results/own/collections/mine/about.json").read_text())
    assert about["passages"] == 150

    table.unlink()
    said = fresh.run("--configfile", "own.yaml", TARGET, status=1)
    assert "own.yaml, line 6: collections.mine: path is data/train.jsonl" in said.splitlines()[-1]
