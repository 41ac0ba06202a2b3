"""Which system to use, and its cost, against the records of the run."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic_run
from synthetic_run import SMALL, mean, plain, tables_of

from cdmae.commands import answering
from cdmae.config.load import load
from cdmae.files import read_json, write_json
from cdmae.layout import place
from cdmae.report import costs, facts
from cdmae.report.facts import Target
from cdmae.report.page import write
from cdmae.report.records import Training

DEV = Target("pydocs", "dev")
TEST = Target("pydocs", "test")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The facts of a whole run with few queries."""
    return facts.read(synthetic_run.make(tmp_path_factory.mktemp("run"), targets=SMALL))


def first_screen(run, folder):
    """The section that says what to use, its words and its table."""
    write(run, folder)
    text = (folder / "index.html").read_text()
    section = text[text.index('<section id="use">') : text.index('<section id="measures">')]
    section = section.partition('<section id="differences">')[0]
    table = next(iter(tables_of(section).values()))
    return plain(section).replace("\N{NO-BREAK SPACE}", " "), table.set_index("system")


# --- costs ----------------------------------------------------------------------------------------


def test_the_cost_of_a_system_is_in_the_records_of_its_jobs_or_nan(run):
    queries = sum(map(sum, (splits.values() for splits in SMALL.values())))
    one = costs.cost(run, "cdmae-stage1")
    assert one.milliseconds == pytest.approx(1000 * 2 / queries)  # of the work alone
    assert one.minutes * 60 == pytest.approx(188.2 + 61)  # its pre-training and its own
    assert one.parameters != one.parameters and one.megabytes != one.megabytes  # not recorded
    bm25 = costs.cost(run, "bm25")
    assert (bm25.parameters, bm25.minutes) == (0, 0)
    assert bm25.milliseconds != bm25.milliseconds, "its log has no line on its work"


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


def test_the_size_of_an_index_is_of_its_files_its_vectors_or_its_entries(run, tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 128}')
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "segment").write_bytes(bytes(5000))
    paths = run.given | {
        "trained": {"cdmae-stage1": str(tmp_path)},
        "indexes": {"bm25": str(tmp_path / "index")},
        "deciding": ["pydocs", "dev"],
    }
    row = {"collection": "pydocs", "megabytes": 3.5, "flops": 1.25, "passage_entries": 90.0}
    known = replace(run, given=paths, sparsity={"mae-stage1": [row]})
    size = run.collections["pydocs"].passages * 128 * 4 / 1e6
    assert costs.cost(known, "cdmae-stage1").megabytes == pytest.approx(size)
    assert costs.cost(known, "bm25").megabytes == pytest.approx(0.005)
    sparse = costs.cost(known, "mae-stage1")
    assert (sparse.megabytes, sparse.flops, sparse.entries) == (3.5, 1.25, 90.0)


# --- the choice -----------------------------------------------------------------------------------


def with_fusion(folder, share, **changes):
    """A run whose fusion was tuned on dev, where it is worth a share of BM25 by held-out weights."""
    skill = synthetic_run.SKILL | {"fused": 0.6}
    values = synthetic_run.config() | {"results": str(folder), **changes}
    path = synthetic_run.make(folder, values, skill=skill, targets=SMALL)
    run = facts.read(path)
    of_bm25 = run.values["bm25", DEV, "RR@10"].iloc[:, 0]
    held_out = share * of_bm25 if share else run.values["fused", DEV, "RR@10"].iloc[:, 0]
    about = {"method": "convex", "systems": ["bm25", "cdmae-stage3"], "weights": [0.8, 0.2]}
    about |= {"on": [*DEV], "measure": "RR@10", "held_out": dict(held_out)}
    weights = Path(place(str(folder), "fusion", system="fused"))
    weights.parent.mkdir(parents=True, exist_ok=True)
    write_json(weights, about)
    write_json(path, read_json(path) | {"fusions": {"fused": str(weights)}})
    return facts.read(path), load(values)


@pytest.mark.parametrize(("share", "pick"), [(None, "fused"), (1.0, "bm25"), (0.1, "bm25")])
def test_the_page_and_the_commands_choose_the_same_system_by_held_out_values(tmp_path, share, pick):
    """The fusion is above BM25 on dev as it was tuned, and not where other queries chose."""
    run, config = with_fusion(tmp_path, share)
    words, table = first_screen(run, tmp_path / "report")
    assert f"{pick}: MRR@10" in words and "These queries chose nothing" in words
    assert "fused is 0.8 × bm25 + 0.2 × cdmae-stage3." in words
    assert answering.best_system(config, [*config.systems]) == pick
    if share:
        own = share * mean(run, "bm25", DEV)
        assert table.loc["fused", "pydocs dev"] == f"{100 * own:.1f}"
    assert table.index[0] == "fused", "on the reported split it has the highest mean"


def test_the_same_split_decides_and_is_reported_only_with_a_warning(run, tmp_path):
    only = replace(run, given=run.given | {"reported": [*DEV]})
    words, table = first_screen(only, tmp_path / "report")
    assert "The same queries chose it" in words and "chose nothing" not in words
    assert table.columns[1] == "pydocs dev"


@pytest.mark.parametrize(("skill", "small"), [(1.4, True), (-2.0, False)])
def test_few_queries_choose_only_by_a_significant_difference(tmp_path, skill, small):
    values = synthetic_run.config()
    values["systems"] = {name: values["systems"][name] for name in ("bm25", "mae-stage1")}
    means = {"bm25": 1.9, "mae-stage1": skill}
    targets = {"pydocs": {"dev": 20, "test": 20}}
    run = facts.read(synthetic_run.make(tmp_path, values, skill=means, targets=targets))
    words, _ = first_screen(run, tmp_path / "report")
    assert ("This run is too small to choose." in words) == small
    assert ("mae-stage1: MRR@10" in words) != small


def test_made_queries_are_said_to_be_made(tmp_path):
    values = synthetic_run.config()
    values["collections"]["pydocs"] = {"source": "pseudo", "of": {"source": "text", "path": "x"}}
    run = facts.read(synthetic_run.make(tmp_path, values, targets=SMALL))
    words, _ = first_screen(run, tmp_path / "report")
    assert "The queries of pydocs were made from its passages, not asked by people" in words


def test_the_models_on_disk_have_the_first_seed_and_the_table_has_all(tmp_path):
    run, _ = with_fusion(tmp_path, 1.0, seed=[42, 43])
    words, table = first_screen(run, tmp_path / "report")
    assert "over the models on disk, which have seed 42" in words
    means = 100 * run.values["cdmae-stage1", TEST, "RR@10"].mean()
    assert table.loc["cdmae-stage1", "pydocs test"] == f"{means.mean():.1f} ±{means.std():.1f}"
    assert re.search(r"±: its standard deviation over the 2 seeds", words)
