"""Sources that make their collection from another one."""

from cdmae import collections


def test_reading_the_other_collection_costs_what_it_costs_alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    other = {"dataset": "beir/nfcorpus", "splits": {"test": "test"}}
    alone = collections.source("ir_datasets").Settings(**other)
    derived = collections.source("pseudo").Settings(of={"source": "ir_datasets", **other})
    assert derived.threads() == alone.threads()
    assert derived.version() == alone.version()
    assert derived.depends() == alone.depends()
