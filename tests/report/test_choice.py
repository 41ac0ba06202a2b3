"""The first screen: which system to use, and its cost, against the records of the run."""

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic_run
from synthetic_run import SMALL, rows_of

from cdmae.commands import answering
from cdmae.config.load import load
from cdmae.evaluation.significance import corrected, paired
from cdmae.files import write_json
from cdmae.layout import place
from cdmae.report import costs, facts
from cdmae.report.facts import Target
from cdmae.report.records import Training
from cdmae.report.sections import choice

DEV = Target("pydocs", "dev")
TEST = Target("pydocs", "test")


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


def test_the_pre_training_that_an_encoder_continues_is_a_part_of_its_cost(run):
    encoders = run.config["encoders"]
    after = encoders | {
        "general": encoders["mae"],
        "cdmae": {**encoders["cdmae"], "after": "general"},
    }
    trained = run.encoders | {"general": Training(about={"seconds": 1000.0})}
    longer = replace(run, config=run.config | {"encoders": after}, encoders=trained)
    gained = costs.cost(longer, "cdmae-stage1").minutes - costs.cost(run, "cdmae-stage1").minutes
    assert gained * 60 == pytest.approx(1000)


def test_dense_vectors_are_passages_times_dimensions_times_four_bytes(run, tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 128}')
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "segment").write_bytes(bytes(5000))
    paths = run.paths | {
        "trained": {"cdmae-stage1": str(tmp_path)},
        "indexes": {"bm25": str(tmp_path / "index")},
        "deciding": ["pydocs", "dev"],
    }
    known = replace(run, paths=paths)
    size = run.collections["pydocs"].passages * 128 * 4 / 1e6
    assert costs.cost(known, "cdmae-stage1").megabytes == pytest.approx(size)
    assert costs.cost(known, "bm25").megabytes == pytest.approx(0.005)
    config = run.config | {"evaluation": run.config["evaluation"] | {"keep_vectors": False}}
    encoded = costs.cost(replace(known, config=config), "cdmae-stage1")
    assert encoded.milliseconds != encoded.milliseconds  # its job also encodes the passages


def tuned(run, held_out):
    """The run with weights of its fusion that were tuned on dev, where it has other values."""
    values = run.values["fused", DEV, "RR@10"].iloc[:, 0]
    about = {"method": "convex", "systems": ["bm25", "cdmae-stage3"], "weights": [0.8, 0.2]}
    about |= {"on": [*DEV], "measure": "RR@10", "held_out": dict(held_out(values))}
    return replace(run, fusions={"fused": about})


def test_the_table_has_every_system_best_first_on_the_split_that_chose_nothing(run):
    shown = tuned(run, lambda values: values / 2)
    section = choice.section(shown)
    rows = rows_of(section.tables[0])
    values = {name: run.values[name, TEST, "RR@10"].to_numpy() for name in run.systems}
    assert list(rows) == sorted(values, key=lambda name: -values[name].mean())
    others = [name for name in run.systems if name != "bm25"]
    gaps = dict(
        zip(others, corrected([paired(values[n], values["bm25"]) for n in others]), strict=True)
    )
    for name, row in rows.items():
        on_dev = 100 * run.value(name, DEV, "RR@10") / (2 if name == "fused" else 1)
        assert float(row["pydocs test, MRR@10"]) == pytest.approx(
            100 * values[name].mean(), rel=1e-4
        )
        assert float(row["pydocs dev, MRR@10: decides"]) == pytest.approx(on_dev, rel=1e-4)
        if name in gaps:
            assert float(row["over bm25"]) == pytest.approx(100 * gaps[name].difference, rel=1e-4)
            assert float(row["p, Holm"]) == pytest.approx(gaps[name].p, rel=1e-4)
        assert float(row["training"]) == pytest.approx(costs.cost(run, name).minutes, rel=1e-4)
    text = " ".join(str(section.text).split())
    assert "fused is 0.8 × bm25 + 0.2 × cdmae-stage3." in text and "chose nothing" in text
    assert "judged there with weights that the other half of the queries chose" in text


@pytest.mark.parametrize(("share", "pick"), [(3.0, "fused"), (1.0, "bm25"), (0.1, "bm25")])
def test_the_page_and_the_commands_choose_the_same_system_by_held_out_values(tmp_path, share, pick):
    """The fusion is above BM25 on dev as it was tuned, and not where other queries chose."""
    skill = synthetic_run.SKILL | {"fused": 0.6}
    values = synthetic_run.config() | {"results": str(tmp_path)}
    run = facts.read(synthetic_run.make(tmp_path, values, skill=skill, targets=SMALL))
    of_bm25 = run.values["bm25", DEV, "RR@10"].iloc[:, 0]
    run = tuned(run, lambda fused: share / 3 * fused if share == 3 else share * of_bm25)
    weights = Path(place(str(tmp_path), "fusion", system="fused"))
    weights.parent.mkdir(parents=True, exist_ok=True)
    write_json(weights, run.fusions["fused"])
    section = choice.section(run)
    assert section.values["pick"] == pick
    config = load(values)
    assert answering.best_system(config, [*config.systems]) == pick
    assert f"{pick}: MRR@10" in str(section.text)


def test_the_same_split_decides_and_is_reported_only_with_a_warning(run):
    only = replace(run, paths=run.paths | {"reported": [*DEV]})
    section = choice.section(only)
    assert "The same queries chose it" in str(section.text)
    assert "pydocs dev, MRR@10: decides" not in rows_of(section.tables[0])["bm25"]
    assert "The same queries chose it" not in str(choice.section(run).text)


def test_the_models_on_disk_have_the_first_seed(tmp_path):
    values = synthetic_run.config() | {"seed": [42, 43]}
    run = facts.read(synthetic_run.make(tmp_path, values, targets=SMALL))
    rows = rows_of(choice.section(run).tables[0])
    first = run.values["cdmae-stage1", TEST, "RR@10"].iloc[:, 0].mean()
    assert float(rows["cdmae-stage1"]["pydocs test, MRR@10"]) == pytest.approx(
        100 * first, rel=1e-4
    )
    assert first != pytest.approx(run.value("cdmae-stage1", TEST, "RR@10"))


@pytest.mark.parametrize(("skill", "small"), [(1.4, True), (-2.0, False)])
def test_few_queries_choose_only_by_a_significant_difference(tmp_path, skill, small):
    values = synthetic_run.config()
    values["systems"] = {name: values["systems"][name] for name in ("bm25", "mae-stage1")}
    means = {"bm25": 1.9, "mae-stage1": skill}
    targets = {"pydocs": {"dev": 20, "test": 20}}
    run = facts.read(synthetic_run.make(tmp_path, values, skill=means, targets=targets))
    text = str(choice.section(run).text)
    assert ("This run is too small to choose." in text) == small
    assert ("mae-stage1: MRR@10" in text) != small
