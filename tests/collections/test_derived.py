"""Sources that make their collection from another one."""

import pytest

from cdmae import collections


@pytest.mark.parametrize("name", ["pseudo", "misspelt"])
def test_reading_the_other_collection_costs_what_it_costs_alone(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    other = {"dataset": "beir/nfcorpus", "splits": {"test": "test"}}
    alone = collections.source("ir_datasets").Settings(**other)
    of = {"source": "ir_datasets", **other}
    derived = collections.source(name).Settings(of=of)
    assert derived.threads() == alone.threads()
    assert derived.version() == alone.version()
    assert derived.depends() == alone.depends()
    assert derived.folders() == alone.folders()
