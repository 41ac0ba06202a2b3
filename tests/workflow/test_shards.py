"""Results that are made in shards have the bits of results that one job made."""

import shutil
from hashlib import sha256

import pytest

from tests.workflow.conftest import SMOKE, jobs

pytestmark = pytest.mark.workflow


def test_shards_change_no_bit(finished, overlay):
    """Tokens, n-grams of two orders, and runs; what the shards leave is deleted."""
    window = overlay("importance: {ami: {window: 2}}")
    names = ("tokens/tiny/pydocs", "ngrams/ami/tiny/pydocs", "runs/cdmae-stage1/pydocs.dev.parquet")
    folders = [finished.results / name for name in names]
    targets = [f"results/smoke/{name}" for name in names]
    finished.run(*SMOKE, window, *targets)
    before = hashes(folders)
    for folder in folders[:2]:
        shutil.rmtree(folder)
    folders[2].unlink()
    found = jobs(
        finished.run(
            *SMOKE, window, "--set-scatter", "shards=2", "--rerun-triggers", "mtime", *targets
        )
    )
    assert found["ngram_counts ami,tiny,pydocs,2,2-of-2"] == 1
    assert found["search_part cdmae-stage1,2-of-2"] == 1
    assert hashes(folders) == before
    assert not [path for path in (finished.results / "parts").rglob("*") if path.is_file()]


def hashes(paths):
    files = [file for path in paths for file in sorted([path, *path.rglob("[a-z]*")])]
    return {file: sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}
