"""The first lines of the page: collapsed trainings, and models that are worse than their inputs."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic_run
from synthetic_run import SMALL, plain

from cdmae import formats
from cdmae.report import alarms, columns, comparisons, facts
from cdmae.report.negatives import Audit, above_positive
from cdmae.report.page import write
from cdmae.runs import Run

NOTE = "at step 99 the outputs are < 5 times closer together"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose reranker ranks far below the run that it reorders."""
    skill = synthetic_run.SKILL | {"cdmae-reranker": 9.0}
    folder = tmp_path_factory.mktemp("run")
    return facts.read(synthetic_run.make(folder, skill=skill, targets=SMALL))


def noted(run, name, note=NOTE):
    """The run with a note of one training."""
    about = {**run.trained[name].about, "notes": [note]}
    return replace(run, trained=run.trained | {name: replace(run.trained[name], about=about)})


def test_alarms_are_the_first_lines_of_the_page_and_name_whom_a_bad_teacher_taught(run, tmp_path):
    write(noted(run, "cdmae-reranker"), tmp_path / "report")
    page = (tmp_path / "report/index.html").read_text()
    main = page[page.index("<main>") :]
    assert main.index('<section id="alarms"') < main.index('<section id="use"')
    first = plain(main[: main.index('<section id="use"')])
    assert "at step 99 the outputs are < 5 times closer together. It taught cdmae-stage3" in first
    column = columns.reported(run)
    gap = comparisons.named(run, column)["cdmae-reranker", "cdmae-stage2"]
    assert f"{formats.points(-gap.difference)} points below cdmae-stage2" in first
    assert formats.probability(gap.p) in first


def test_a_run_without_faults_has_no_alarms(run):
    fine = {
        key: run.values["cdmae-stage2", *key[1:]] if key[0] == "cdmae-reranker" else frame
        for key, frame in run.values.items()
    }
    assert alarms.alarms(replace(run, values=fine)) == []


@pytest.mark.parametrize("checkpoint", ["org/model", ""])
def test_random_weights_have_no_knowledge_to_lose(run, checkpoint):
    note = "the outputs are closer: the knowledge of the initial weights is lost (too high a rate)"
    starts = {"tiny": {**run.config["starts"]["tiny"], "checkpoint": checkpoint}}
    changed = noted(replace(run, config=run.config | {"starts": starts}), "cdmae-stage2", note)
    assert bool(alarms.noted(changed)) == bool(checkpoint)


def test_a_retriever_below_its_published_checkpoint_is_named_with_p(tmp_path):
    values = synthetic_run.config()
    values["starts"] = {name: {"checkpoint": "org/model"} for name in values["starts"]}
    values["systems"]["published"] = {"kind": "external", "model": "org/model"}
    skill = synthetic_run.SKILL | {"published": 1.0}
    path = synthetic_run.make(tmp_path, values, skill=skill, targets={"pydocs": {"test": 400}})
    run = facts.read(path)
    column = columns.reported(run)
    found = {one.name: one for one in alarms.worse_than_checkpoint(run, column)}
    gap = columns.difference(run, column, "cdmae-stage1", "published")
    words = found["cdmae-stage1"].words
    assert formats.probability(gap.p) in words and formats.points(gap.b) in words
    assert "Usual causes" in found["cdmae-stage1"].causes


def test_the_audit_counts_negatives_above_the_best_judged_passage():
    """Against plain loops over random scores; passages that were not mined are random negatives."""
    random = np.random.default_rng(5)
    queries, passages = 30, 60
    ranked = [random.permutation(passages)[:50].astype(np.int32) for _ in range(queries)]
    scores = [np.sort(random.normal(size=50)).astype(np.float32)[::-1] for _ in range(queries)]
    judged = {(query, passage) for query in range(queries) for passage in (query, query + 7)}
    mined = {(query, int(passage)) for query in range(queries) for passage in range(0, 60, 3)}
    expected = {True: [], False: []}
    for query in range(queries):
        own = dict(zip(ranked[query].tolist(), scores[query].tolist(), strict=True))
        best = max((own[each] for each in own if (query, each) in judged), default=None)
        for passage, score in own.items():
            if best is not None and (query, passage) not in judged:
                expected[(query, passage) in mined].append(score > best)

    def keys(pairs):
        return np.array([query * (1 << 32) + passage for query, passage in pairs])

    found = above_positive(Run.of(ranked, scores), keys(mined - judged), keys(judged))
    assert found == pytest.approx((np.mean(expected[True]), np.mean(expected[False])))
    assert above_positive(Run.of(ranked, scores), keys(mined), keys({(99, 1)})) is None


@pytest.mark.parametrize("shares", [Audit(0.3, 0.4), Audit(0.4, 0.3), Audit(0.4, float("nan"))])
def test_a_teacher_that_prefers_random_negatives_to_mined_ones_is_an_alarm(
    run, monkeypatch, shares
):
    monkeypatch.setattr(alarms, "audit", lambda run: {"cdmae-stage3": shares})
    found = alarms.misled(run)
    assert [one.name for one in found] == ["cdmae-reranker"] * (shares.random > shares.mined)
    assert not found or "40.0\N{NO-BREAK SPACE}% of the random negatives" in found[0].words


def test_measures_of_different_queries_are_refused(tmp_path):
    values = synthetic_run.config() | {"seed": [42, 43]}
    path = synthetic_run.make(tmp_path, values, targets={"pydocs": {"dev": 30}}, parts=())
    other = tmp_path / "measures" / "mae-stage1@43.tsv"
    other.write_text(other.read_text().replace("dev-00007", "dev-99999"))
    with pytest.raises(facts.InputError, match="on pydocs dev are for different queries"):
        facts.read(path)
