"""Results that are made in shards have the bits of results that one job made."""

import shutil
from hashlib import sha256

import pytest

from tests.workflow.conftest import SMOKE, jobs

pytestmark = pytest.mark.workflow
SHARDS = ("--set-scatter", "shards=2", "--rerun-triggers", "mtime", *SMOKE)


def test_a_search_in_shards_changes_no_bit(finished):
    run = finished.results / "runs/cdmae-stage1/pydocs.dev.parquet"
    before = hashes(run.parent)
    run.unlink()
    found = jobs(finished.run(*SHARDS, "results/smoke/runs/cdmae-stage1/pydocs.dev.parquet"))
    assert set(found) == {
        "search_part cdmae-stage1,1-of-2",
        "search_part cdmae-stage1,2-of-2",
        "search_joined cdmae-stage1",
    }
    assert hashes(run.parent) == before
    assert not list((finished.results / "parts").rglob("*.parquet"))


def test_rerankers_teachers_and_bm25_in_shards_change_no_bit(finished):
    scored = ("runs/cdmae-reranker/pydocs.dev.parquet", "teachers/cdmae-stage3.parquet")
    scored += ("runs/bm25/pydocs.dev.parquet",)
    mined = ("negatives/bm25.pydocs.train.parquet",)  # last: trainings read it
    for names, rules in ((scored, ("rerank", "teacher", "search_bm25")), (mined, ("mine_bm25",))):
        files = [finished.results / name for name in names]
        before = [path.read_bytes() for path in files]
        for path in files:
            path.unlink()
        found = jobs(finished.run(*SHARDS, *(f"results/smoke/{name}" for name in names)))
        made = {job.partition(" ")[0] for job in found}
        assert made == {f"{rule}_{step}" for rule in rules for step in ("part", "joined")}
        assert sum(found.values()) == 3 * len(rules)
        assert [path.read_bytes() for path in files] == before


def test_counts_in_shards_change_no_bit(finished, overlay):
    """Tokens, and n-grams of two orders."""
    window = overlay("importance: {ami: {window: 2}}")
    names = ("tokens/tiny/pydocs", "ngrams/ami/tiny/pydocs")
    targets = [f"results/smoke/{name}" for name in names]
    finished.run(*SMOKE, window, *targets)
    folders = [finished.results / name for name in names]
    before = [hashes(folder) for folder in folders]
    for folder in folders:
        shutil.rmtree(folder)
    found = jobs(finished.run(*SHARDS, window, *targets))
    assert found["ngram_counts ami,tiny,pydocs,2,2-of-2"] == 1
    assert [hashes(folder) for folder in folders] == before
    assert not list((finished.results / "parts").rglob("*.npy"))


def hashes(folder):
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files}
