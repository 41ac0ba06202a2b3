"""Which jobs start first."""

import re

import pytest

from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize(("gpus", "first"), [(8, True), (1, False)])
def test_pretraining_goes_first_where_it_takes_several_gpus(code, gpus, first):
    """More than all other jobs together, which would take the GPUs one by one; on one GPU the longest chain decides."""
    said = code.run(*SMOKE, "-n", "--resources", f"gpu={gpus}")
    blocks = re.findall(r"^rule (\w+):\n((?: {4}.*\n)*)", said, flags=re.MULTILINE)
    asked = [(rule, int(found[1])) for rule, block in blocks if (found := re.search(r"priority: (\d+)", block))]
    pretraining = [priority for rule, priority in asked if rule == "pretrain"]
    others = [priority for rule, priority in asked if rule != "pretrain"]
    assert len(pretraining) == 3 and len(others) > 10
    assert (min(pretraining) > sum(others)) == first
    assert len(set(pretraining)) > 1, "among themselves by what waits for them"
