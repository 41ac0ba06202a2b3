"""The first screen: which system to use, and its cost, against the records of the run."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import synthetic_run
from synthetic_run import SMALL, rows_of

from cdmae.report import costs, facts
from cdmae.report.columns import Column
from cdmae.report.facts import Target
from cdmae.report.plots import Point, scatter
from cdmae.report.sections import choice

DEV = Target("pydocs", "dev")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The facts of a whole run with few queries."""
    return facts.read(synthetic_run.make(tmp_path_factory.mktemp("run"), targets=SMALL))


def test_the_cost_of_a_system_is_in_the_records_of_its_jobs_or_nan(run):
    queries = sum(map(sum, (splits.values() for splits in SMALL.values())))
    one = costs.cost(run, "cdmae-stage1")
    assert one.milliseconds == pytest.approx(1000 * 6 / queries)
    assert one.minutes * 60 == pytest.approx(188.2 + 61)  # its pre-training and its own
    assert one.parameters != one.parameters and one.megabytes != one.megabytes  # not recorded
    bm25 = costs.cost(run, "bm25")
    assert (bm25.parameters, bm25.minutes) == (0, 0)
    assert bm25.milliseconds == pytest.approx(1000 * 21 / queries)


def test_a_system_costs_what_it_reads_and_learns_from_costs_each_once(run):
    fused = costs.cost(run, "fused")
    assert costs.members(run, "fused") == ["fused", "bm25", "cdmae-stage3"]
    # stages 1 to 3, the reranker that teaches, and one pre-training
    assert fused.minutes * 60 == pytest.approx(188.2 + 4 * 61)


def test_dense_vectors_are_passages_times_dimensions_times_four_bytes(run, tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 128}')
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "segment").write_bytes(bytes(5000))
    paths = run.paths | {
        "trained": {"cdmae-stage1": str(tmp_path)},
        "indexes": {"bm25": str(tmp_path / "index")},
        "shown": ["pydocs", "dev"],
    }
    known = replace(run, paths=paths)
    size = run.collections["pydocs"].passages * 128 * 4 / 1e6
    assert costs.cost(known, "cdmae-stage1").megabytes == pytest.approx(size)
    assert costs.cost(known, "bm25").megabytes == pytest.approx(0.005)
    config = run.config | {"evaluation": run.config["evaluation"] | {"keep_vectors": False}}
    encoded = costs.cost(replace(known, config=config), "cdmae-stage1")
    assert encoded.milliseconds != encoded.milliseconds  # its job also encodes the passages


def test_the_table_has_every_system_with_its_mean_and_cost(run):
    section = choice.section(run)
    rows = rows_of(section.tables[0])
    assert set(rows) == set(run.systems)
    for name, row in rows.items():
        assert float(row["MRR@10"]) == pytest.approx(100 * run.value(name, DEV, "RR@10"), rel=1e-4)
        assert float(row["training"]) == pytest.approx(costs.cost(run, name).minutes, rel=1e-4)
    roles = {one.name: one.roles for one in section.values["candidates"]}
    best = max(run.systems, key=lambda name: run.value(name, DEV, "RR@10"))
    assert "best of all" in roles[best] and "BM25" in roles["bm25"]
    assert sum(roles.values(), []).count("best single retriever") == 1
    assert "not measured" in str(section.text)


@pytest.mark.parametrize(
    ("verdicts", "pick"),
    [
        ({}, "bm25"),
        ({"bm25": "better"}, "cdmae-stage3"),
        ({"bm25": "better", "cdmae-stage3": "better"}, "fused"),
    ],
)
def test_the_choice_is_the_simplest_that_the_best_is_not_shown_to_exceed(
    run, monkeypatch, verdicts, pick
):
    gaps = {name: SimpleNamespace(verdict=verdicts.get(name, "open")) for name in run.systems}
    monkeypatch.setattr(Column, "difference", lambda self, a, b: gaps[b])
    assert choice._simplest(Column.of(run, DEV), ["bm25", "cdmae-stage3", "fused"]) == pick


def test_a_retriever_below_its_published_checkpoint_is_named_with_p(tmp_path):
    values = synthetic_run.config()
    values["starts"] = {name: {"checkpoint": "org/model"} for name in values["starts"]}
    values["systems"]["published"] = {"kind": "external", "model": "org/model"}
    skill = synthetic_run.SKILL | {"published": 1.0}
    path = synthetic_run.make(tmp_path, values, skill=skill, targets={"pydocs": {"dev": 400}})
    run = facts.read(path)
    column = Column.of(run, DEV)
    found = choice.setbacks(column)
    assert "cdmae-stage1" in [one.system for one in found]
    assert all(one.gap == column.difference(one.system, "published") for one in found)
    text = str(choice.section(run).text)
    assert "cdmae-stage1 is worse than its initial checkpoint" in text and "Usual causes" in text


def test_a_scatter_names_every_point_and_leaves_out_unknown_costs():
    points = [Point("a", 1, 10, "a: 1"), Point("b", 100, 20, "b: 2")]
    unknown = Point("c", float("nan"), 30, "c: 3")
    figure = scatter("s", "Title", [*points, unknown], x_axis="ms", y_axis="MRR")
    assert figure.description == "Title: a: 1; b: 2"
    free = Point("d", 0, 5, "d: free", strong=True)
    assert "d: free" in scatter("s", "T", [*points, free], x_axis="", y_axis="").description
    assert scatter("s", "Title", [points[0], unknown], x_axis="ms", y_axis="MRR") is None


def test_a_small_run_recommends_nothing(run, monkeypatch):
    assert "too small to choose" not in str(choice.section(run).text)
    monkeypatch.setattr(choice, "is_small", lambda facts: True)
    text = str(choice.section(run).text)
    assert "This run is too small to choose." in text and 'class="picked"' not in text
