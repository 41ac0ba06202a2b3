"""The paper's numbers stand beside our own on the collections that it has, whichever way they came."""

from types import SimpleNamespace

import pytest

from cdmae.errors import InputError
from cdmae.report.facts import Target
from cdmae.report.paper import published


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


def test_every_method_has_its_row_and_source_and_averages_are_those_of_its_columns():
    rows = [row for number in (1, 2, 3) for row in published.rows(f"table {number}").values()]
    assert {row.source.partition("; ")[2] for row in rows if row.name == "SimLM"} == {"Wang et al. 2022"}
    assert {row.name for row in rows if row.source.endswith("; the paper")} == {published.OURS}
    stages = {stage: row.source for (name, stage), row in published.rows("table 2").items() if name == "RetroMAE"}
    assert stages[1] == "table 2; Xiao et al. 2022, rerun for the paper" and stages[2] == "table 2; Xiao et al. 2022"
    for row in published.rows("table 3").values():
        values = [value for key, value in row.values.items() if key != published.AVERAGE]
        assert len(values) == 14
        assert sum(values) / 14 == pytest.approx(row.values[published.AVERAGE], abs=0.06), row.name


@pytest.mark.parametrize(
    ("table", "name", "dataset", "measure", "stage", "value"),
    [
        ("table 1", "DeepCT", "msmarco dl20", "nDCG@10", 0, None),
        ("table 1", "MASTER", "msmarco dl19", "nDCG@10", 0, 72.7),
        ("table 2", "CDMAE", "msmarco dev", "RR@10", 2, 40.2),
        ("table 3", "Contriever", "fiqa", "nDCG@10", 0, 32.9),
        ("table 4", "w/o projection", "msmarco dl20", "nDCG@10", 0, 65.9),
        ("table 5", "domain", "msmarco dl19", "nDCG@10", 0, 64.4),
        ("figure 4", "8", "msmarco dl19 and dl20", "nDCG@10", 0, 66.3),
        ("table 6", "SimLM", "128 passages of 150 word-pieces", "ms on a V100", 0, 2.8),
        ("NanoBEIR", "BM25", "nano-beir/scifact", "nDCG@10", 0, 72.82),
        ("NanoBEIR", "BM25", "nano-beir/nfcorpus", "nDCG@10", 0, None),
        ("section 3.2", "BERT", "all masks", "% on stop-words and punctuation", 0, 40.0),
    ],
)
def test_numbers_as_they_stand_in_the_paper(table, name, dataset, measure, stage, value):
    assert published.rows(table)[name, stage].values.get(published.Key(dataset, measure)) == value


LINE = "table 1,BM25,0,msmarco dev,R@50,58.5,Robertson and Zaragoza 2009"
TEXT = published.FILE.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace(LINE, LINE.replace("58.5", "58,5")), "Expected 7 fields in line 3, saw 8"),
        (TEXT.replace(LINE, LINE.replace("58.5", "x")), ", line 3 is table 1,BM25,.*R@50,x,.*; allowed: .*from 0 to 1"),
        (TEXT.replace(LINE, LINE.replace("58.5", "585")), ", line 3 is "),
        (TEXT.replace(LINE, LINE.replace(",0,", ",one,")), ", line 3 is .*; allowed: .*a stage from 0 to 3"),
        (TEXT.replace(LINE, LINE.rpartition(",")[0]), ", line 3 is .*; allowed: no empty cell"),
        (TEXT.replace(LINE, ""), ", line 3 is "),
        (TEXT.replace(LINE, f"{LINE}\n{LINE}"), ", line 4 is .* a number once; git restore paper_results.csv"),
        (None, " cannot be read .*; git restore"),
        ("table,row\n", ", line 1 is table,row; allowed: table,row,stage,"),
    ],
    ids=range(9),
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, monkeypatch, text, message):
    path = tmp_path / "paper_results.csv"
    monkeypatch.setattr(published, "FILE", path)
    if text:
        path.write_text(text)
    with pytest.raises(InputError, match=f"^{path}.*{message}"):
        published.rows("table 1")
