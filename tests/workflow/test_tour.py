"""docs/tour.md's blocks run one after the other on a finished run."""

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.workflow
PAGE = (Path(__file__).resolve().parents[2] / "docs/tour.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_blocks_of_the_tour_follow_one_passage(smoke, monkeypatch):
    monkeypatch.chdir(smoke.folder)
    names = {"__name__": "tour"}
    for block in BLOCKS:
        assert "results/" in block or "import" in block
        exec(block.replace('"results/', '"results/smoke/'), names)
    pieces = len(names["one"].ids)
    assert names["mine"]["query"].tolist() == [0], "the passage answers a query of the test split"
    assert len(names["values"]) <= pieces and np.isfinite(names["values"]).all()
    assert names["chosen"].sum() == pieces // 2
    assert len(names["found"]) == len(names["scores"]) > 0
