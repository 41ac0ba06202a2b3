"""The paper's numbers stand beside our own on the collections that it has, whichever way they came."""

from types import SimpleNamespace

import pytest

from cdmae.report import published
from cdmae.report.facts import Target


@pytest.mark.parametrize(
    ("entry", "split", "name"),
    [
        ({"source": "msmarco"}, "dev", "msmarco dev"),
        ({"source": "ir_datasets", "dataset": "msmarco-passage"}, "dl19", "msmarco dl19"),
        ({"source": "ir_datasets", "dataset": "msmarco-passage"}, "train", ""),
        ({"source": "ir_datasets", "dataset": "beir/msmarco"}, "dev", ""),
        ({"source": "pydocs"}, "dev", ""),
    ],
)
def test_ms_marco_is_known_by_either_source(entry, split, name):
    facts = SimpleNamespace(entries=lambda section: {"mine": entry})
    assert published.dataset(facts, Target("mine", split)) == name
