"""The first lines of the page: collapsed trainings, and models that are worse than their inputs."""

import pytest
import synthetic_run
from synthetic_run import SMALL, plain

from cdmae import formats
from cdmae.errors import InputError
from cdmae.files import read_json, write_json
from cdmae.report import alarms, columns, comparisons
from cdmae.report.facts import Target
from cdmae.report.page import write

KNOWLEDGE = "the knowledge of the initial weights is lost (too high a rate)"


def noted(run, name, note):
    """Add a note to the record of a training."""
    about = run.at("trained", system=name) / "about.json"
    write_json(about, read_json(about) | {"notes": [note]})


def test_alarms_are_the_first_lines_and_name_whom_a_bad_teacher_taught(tmp_path):
    skill = synthetic_run.SKILL | {"cdmae-reranker": 9.0}
    run = synthetic_run.make(tmp_path / "run", skill=skill)
    noted(run, "cdmae-reranker", "at step 99 the outputs are < 5 times closer together")
    noted(run, "cdmae-stage2", KNOWLEDGE)  # of random weights, which have none
    write(run, tmp_path / "report")
    page = (tmp_path / "report/index.html").read_text()
    main = page[page.index("<main>") :]
    assert main.index('<section id="alarms"') < main.index('<section id="use"')
    first = plain(main[: main.index('<section id="use"')])
    assert "at step 99 the outputs are < 5 times closer together. It taught cdmae-stage3" in first
    gap = comparisons.named(run, columns.reported(run))["cdmae-reranker", "cdmae-stage2"]
    assert f"{formats.points(-gap.difference)} points below cdmae-stage2" in first
    assert (
        formats.plain_spaces(formats.probability(gap.p)) in first and "cdmae-stage2:" not in first
    )


def test_a_run_without_faults_has_no_alarms(tmp_path):
    assert alarms.alarms(synthetic_run.make(tmp_path)) == []


def test_a_retriever_below_its_published_checkpoint_is_named_with_p(tmp_path):
    values = synthetic_run.config()
    values["starts"] = {name: {"checkpoint": "org/model"} for name in values["starts"]}
    values["systems"]["published"] = {"kind": "external", "model": "org/model"}
    skill = synthetic_run.SKILL | {"published": 1.0}
    run = synthetic_run.make(tmp_path, values, skill=skill, targets={"pydocs": {"test": 400}})
    noted(run, "cdmae-stage3", KNOWLEDGE)
    gap = columns.difference(run, columns.reported(run), "cdmae-stage1", "published")
    found = {one.name: one for one in alarms.alarms(run)}
    words = found["cdmae-stage1"].words
    assert formats.probability(gap.p) in words and formats.points(-gap.difference) in words
    assert "Usual causes" in found["cdmae-stage1"].causes
    assert "cdmae-stage3:" in found


def test_systems_with_fewer_judged_passages_than_others_are_named(tmp_path):
    values = synthetic_run.config("bm25", "mae-stage1", "cdmae-stage1")
    values["collections"]["asked"] = {"source": "queries", "of": "pydocs", "path": str(tmp_path)}
    values["evaluation"]["measures"] = ["RR@10", "Judged@10"]
    targets = {"pydocs": {"dev": 30}, "asked": {"test": 30}}
    run = synthetic_run.make(tmp_path / "run", values, targets=targets)
    for split, collection in (("dev", "pydocs"), ("test", "asked")):
        for share, name in zip((1.0, 0.95, 0.7), run.systems, strict=True):
            run.values[name, Target(collection, split), "Judged@10"][:] = share
    (alarm,) = alarms.alarms(run)
    assert alarm.name == "cdmae-stage1" and "70 % of its best ten" in plain(alarm.words)


def test_measures_of_different_queries_are_refused(tmp_path):
    values = synthetic_run.config(seed=[42, 43])
    run = synthetic_run.make(tmp_path, values, targets=SMALL)
    other = run.at("measures", system="mae-stage1@43")
    other.write_text(other.read_text().replace("dev-00007", "dev-99999"))
    with pytest.raises(InputError, match="on pydocs dev are for different queries"):
        assert run.values
