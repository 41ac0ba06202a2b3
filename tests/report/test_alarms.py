"""The first lines of the page: collapsed trainings, and models that are worse than their inputs."""

from dataclasses import replace

import pytest
import synthetic_run
from synthetic_run import SMALL

from cdmae import formats
from cdmae.report import facts
from cdmae.report.columns import Column
from cdmae.report.facts import Target
from cdmae.report.page import write
from cdmae.report.sections import alarms

DEV = Target("pydocs", "dev")
NOTE = "at step 99 the outputs are < 5 times closer together"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose reranker ranks far below the run that it reorders."""
    skill = synthetic_run.SKILL | {"cdmae-reranker": 9.0}
    folder = tmp_path_factory.mktemp("run")
    return facts.read(synthetic_run.make(folder, skill=skill, targets=SMALL))


def noted(run, name):
    """The run with a note of one training."""
    about = {**run.trained[name].about, "notes": [NOTE]}
    return replace(run, trained=run.trained | {name: replace(run.trained[name], about=about)})


def test_alarms_are_the_first_lines_of_the_page_and_name_whom_a_bad_teacher_taught(run, tmp_path):
    collapsed = noted(run, "cdmae-reranker")
    write(collapsed, tmp_path / "report")
    page = (tmp_path / "report/index.html").read_text()
    main = page[page.index("<main>") :]
    assert main.index('<section id="alarms"') < main.index('<section id="choice"')
    first = " ".join(main[: main.index('<section id="choice"')].split())
    assert (
        "at step 99 the outputs are &lt; 5 times closer together. It taught cdmae-stage3" in first
    )
    gap = Column.of(run, DEV).difference("cdmae-reranker", "cdmae-stage2")
    words = f"{formats.points(-gap.difference)} points below cdmae-stage2"
    assert words in first and formats.probability(gap.p).replace("<", "&lt;") in first
    assert 'href="#alarms"' not in page


def test_a_run_without_faults_has_no_alarms(run):
    fine = {
        key: run.values["cdmae-stage2", *key[1:]] if key[0] == "cdmae-reranker" else frame
        for key, frame in run.values.items()
    }
    assert alarms.section(replace(run, values=fine)) is None


def test_a_retriever_below_its_published_checkpoint_is_named_with_p(tmp_path):
    values = synthetic_run.config()
    values["starts"] = {name: {"checkpoint": "org/model"} for name in values["starts"]}
    values["systems"]["published"] = {"kind": "external", "model": "org/model"}
    skill = synthetic_run.SKILL | {"published": 1.0}
    path = synthetic_run.make(tmp_path, values, skill=skill, targets={"pydocs": {"dev": 400}})
    column = Column.of(facts.read(path), DEV)
    [found] = [one for one in alarms.worse_than_checkpoint(column) if one.name == "cdmae-stage1"]
    gap = column.difference("cdmae-stage1", "published")
    assert formats.probability(gap.p) in found.words and formats.points(gap.b) in found.words
    assert "Usual causes" in found.words
