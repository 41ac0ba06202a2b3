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


def test_every_method_of_the_papers_tables_has_its_row_and_its_source():
    names = {row.name for rows in (published.MAIN, published.STAGES, published.BEIR) for row in rows}
    assert names == set(published.SOURCES)
    assert all("; " in row.source for row in published.MAIN)


@pytest.mark.parametrize(
    ("rows", "name", "dataset", "measure", "stage", "value"),
    [
        (published.MAIN, "DeepCT", "msmarco dev", "R@50", 0, 69.0),
        (published.MAIN, "TAS-B", "msmarco dl20", "nDCG@10", 0, 69.3),
        (published.MAIN, "MASTER", "msmarco dl19", "nDCG@10", 0, 72.7),
        (published.STAGES, "coCondenser", "msmarco dev", "R@1000", 3, 98.3),
        (published.STAGES, "CDMAE", "msmarco dev", "RR@10", 2, 40.2),
        (published.BEIR, "Contriever", "fiqa", "nDCG@10", 0, 32.9),
        (published.BEIR, "DPR", "scidocs", "nDCG@10", 0, 7.7),
        (published.PROJECTION, "w/o projection", "msmarco dl20", "nDCG@10", 0, 65.9),
        (published.CORPUS, "domain", "msmarco dl19", "nDCG@10", 0, 64.4),
        (published.NEGATIVES, "8", "msmarco dl19 and dl20", "nDCG@10", 0, 66.3),
    ],
)
def test_numbers_as_they_stand_in_the_paper(rows, name, dataset, measure, stage, value):
    assert published.row(rows, name).values[published.Key(dataset, measure, stage)] == value


def test_the_papers_averages_are_those_of_its_columns():
    for row in published.BEIR:
        values = [row.values[published.Key(each, "nDCG@10")] for each in published.BEIR_SETS]
        assert sum(values) / 14 == pytest.approx(row.values[published.Key("average", "nDCG@10")], abs=0.06), row.name
