"""The page of a real run: what its first screen says is what its tables hold, in the order of the config."""

from __future__ import annotations

import pytest

from cdmae.report import facts as facts_module

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def run(smoke):
    """The facts of the smoke run."""
    folder = pytest.MonkeyPatch()
    folder.chdir(smoke.folder)
    yield facts_module.read("results/smoke/facts.json")
    folder.undo()
