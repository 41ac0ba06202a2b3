"""config/ablations.yaml: every setting that issue and paper vary, on one side of one system, within
an hour.
"""

from pathlib import Path

import pytest
from planned import plan
from synthetic_run import rows_of, with_system
from test_exhibits import measured, shipped

from cdmae.config import systems
from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.report import comparisons
from cdmae.report.facts import Target
from cdmae.report.paper import exhibits
from cdmae.report.sections import changes, ranking

FILES = Path(__file__).resolve().parents[2] / "config"
DEV = Target("pydocs", "dev")


@pytest.fixture(scope="module")
def run():
    return measured(shipped("ablations"))


@pytest.fixture(scope="module")
def config():
    return load(gather(FILES / "config.yaml", [FILES / "ablations.yaml"]))


def test_every_setting_is_varied_around_the_paper_s(run):
    varied = [
        change for change in comparisons.changes(run) if change.setting != "encoder.take_step"
    ]
    several, single = changes.grouped(varied)
    found = {key: [value for value, _ in changes.values(group)] for key, group in several.items()}
    assert found == {
        ("encoder.sigma", "cdmae-stage1"): ["0", "1", "2", "4", "\N{INFINITY}"],
        ("encoder.importance.window", "cdmae-stage1"): ["2", "3", "4", "5"],
        ("encoder.decoder_ratio", "cdmae-stage1"): ["0.3", "0.5", "0.7"],
        ("encoder.decoder_layers", "cdmae-stage1"): ["1", "2", "4"],
        ("encoder.encoder_masking", "cdmae-stage1"): ["whole_word", "importance", "uniform"],
        ("stage.group", "group-2"): ["2", "4", "8", "16"],
        ("stage.alpha", "cdmae-stage3"): ["1", "4", "16"],
    }
    assert {each.setting for each in single} == {
        "encoder.projection", "encoder.objective", "encoder.decoder_masking", "encoder.collection", "encoder.after",
        "encoder.importance.pmi", "encoder.importance.normaliser", "encoder.importance.unit",
        "encoder.importance.edges", "encoder.mask_share", "stage.in_batch", "stage.epochs",
    }  # fmt: skip


def test_queries_times_group_is_constant(config):
    sizes = {name: stage for name, stage in config.stages.items() if name.startswith("group-")}
    assert len(sizes) == 4
    assert {stage.queries * stage.group for stage in sizes.values()} == {256}


def test_one_training_and_one_teacher_serve_all_that_share_them(config):
    """23 pre-trainings; the steps of two of them, and the weights of stage 3, cost none of their
    own.
    """
    jobs = plan(config.values())
    snapshots = {"mae-300", "mae-600", "cdmae-300", "cdmae-600"}
    assert {name for rule, name in jobs if rule == "snapshot"} == snapshots
    assert [name for rule, name in jobs if rule == "teacher"] == ["cdmae-stage3"]
    students = [
        name for name in systems.of_kind(config, "retriever") if config.systems[name].teacher
    ]
    assert len(students) == 3
    teachers = [jobs["train", name].inputs["teacher"] for name in students]
    assert teachers == 3 * [[f"{config.results}/teachers/cdmae-stage3.parquet"]]


def test_steps_in_the_place_of_epochs_are_one_change():
    config = with_system(shipped("ablations"), "passes", encoder={"steps": 0, "epochs": 5.0})
    found = comparisons.differences(measured(config), "cdmae-stage1", "passes")
    assert found == {"encoder.steps": (1200, 0)}


def test_steps_of_both_trainings_from_none_to_all_which_are_not_ranked(run):
    assert comparisons.growth(run) == {
        "mae": [(0, "none-stage1"), (300, "mae-300"), (600, "mae-600"), (1200, "mae-stage1")],
        "cdmae": [
            (0, "none-stage1"),
            (300, "cdmae-300"),
            (600, "cdmae-600"),
            (1200, "cdmae-stage1"),
        ],
    }
    found = changes.growth(run)
    assert [figure.name for figure in found.figures] == ["steps-pydocs-dev", "steps-pydocs-test"]
    (table,) = found.tables
    value = run.value("cdmae-600", DEV, "RR@10") - run.value("cdmae-300", DEV, "RR@10")
    row = next(row for row in table.rows if row[0] == "cdmae" and row[1].value == 600)
    assert row[3].value == pytest.approx(100 * value)
    assert table.rows[0][3].value is None, "nothing is before step 0"
    (found,) = ranking.rankings(run)
    assert "cdmae-stage1" in found.systems and not {"cdmae-300", "mae-600"} & set(found.systems)


def test_the_figure_of_steps_pulls_its_systems_and_shows_a_line_for_each_training(run):
    expected = {
        "none-stage1",
        "mae-300",
        "mae-600",
        "mae-stage1",
        "cdmae-300",
        "cdmae-600",
        "cdmae-stage1",
    }
    assert set(exhibits.wanted("figure_steps", run.config).systems) == expected
    picture = exhibits.figure("figure_steps", run).standalone()
    assert picture.count("<path") == 4, "two panels of two lines"
    found = rows_of(exhibits.table("figure_steps", run))
    value = 100 * run.value("mae-300", DEV, "RR@10")
    assert float(found["mae", "300", "ours", "mae-300"]["pydocs dev, MRR@10"]) == pytest.approx(
        value, rel=1e-4
    )


def test_each_setting_has_a_table_and_a_picture_of_its_own(run):
    found = changes.section(run)
    (table,) = [each for each in found.tables if each.name == "changes-encoder-sigma-cdmae-stage1"]
    assert [row[:2] for row in table.rows] == [
        ["0", "sigma-0"], ["1", "cdmae-stage1"], ["2", "sigma-2"], ["4", "sigma-4"], ["\N{INFINITY}", "sigma-inf"],
    ]  # fmt: skip
    assert "changes-encoder-sigma-cdmae-stage1" in {figure.name for figure in found.figures}
    assert not {"changes-encoder-encoder_masking-cdmae-stage1"} & {
        figure.name for figure in found.figures
    }
    assert [each.name for each in found.tables][-1] == "changes"
    assert len({each.name for each in found.tables}) == len(found.tables) == 8
