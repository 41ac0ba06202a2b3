"""Several users, one set of counts: Snakemake's cache between workflows, as docs/clusters.md tells to use it."""

import shutil
from pathlib import Path

import pytest

from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow

MADE = {  # what docs/clusters.md names, by rule
    "tokens": "tokens/tiny/pydocs",
    "ngrams": "ngrams/ami/tiny/pydocs",
    "importance": "importance/ami/tiny/pydocs",
    "index_bm25": "bm25/pydocs",
}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def test_what_one_workflow_made_another_takes(smoke, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    shared = (*SMOKE, "--cache", *MADE)
    targets = [f"results/smoke/{MADE[rule]}" for rule in ("importance", "index_bm25")]
    for user in ("one", "another"):
        checkout = smoke.copy(tmp_path / user)
        for path in MADE.values():
            shutil.rmtree(checkout.results / path)
        said = checkout.run(*targets, *shared, SNAKEMAKE_OUTPUT_CACHE=str(cache))
        assert said.count("Moving output file") == (4 if user == "one" else 0), "the second takes what is there"
        assert files(checkout.results / MADE["importance"]) == files(smoke.results / MADE["importance"])
    for path in MADE.values():
        assert files(tmp_path / "one/results/smoke" / path) == files(tmp_path / "another/results/smoke" / path)
    assert len(list(cache.iterdir())) == 4

    checkout.edit("cdmae/importance/ami.py", "import numpy as np\n", "import numpy as np\n\nCHANGED = 1\n")
    checkout.run(*targets, *shared, SNAKEMAKE_OUTPUT_CACHE=str(cache))
    assert len(list(cache.iterdir())) == 5, "other code, another entry"
