"""Several users, one set of counts: Snakemake's cache between workflows, as CLUSTERS.md tells to use it."""

import shutil
from pathlib import Path

import pytest

from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow

TARGET = "results/smoke/importance/ami/tiny/pydocs"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def test_what_one_workflow_counted_another_takes(smoke, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    for user in ("one", "another"):
        checkout = smoke.copy(tmp_path / user)
        for made in ("ngrams", "importance"):
            shutil.rmtree(checkout.results / made)
        said = checkout.run(TARGET, *SMOKE, "--cache", "ngrams", "importance", SNAKEMAKE_OUTPUT_CACHE=str(cache))
        assert said.count("Moving output file") == (2 if user == "one" else 0), "the second takes what is there"
        assert files(checkout.folder / TARGET) == files(smoke.folder / TARGET)
    assert len(list(cache.iterdir())) == 2

    checkout.edit("cdmae/importance.py", "import numpy as np\n", "import numpy as np\n\nCHANGED = 1\n")
    checkout.run(TARGET, *SMOKE, "--cache", "ngrams", "importance", SNAKEMAKE_OUTPUT_CACHE=str(cache))
    assert len(list(cache.iterdir())) == 3, "other code, another entry"
