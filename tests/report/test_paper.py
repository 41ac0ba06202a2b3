"""The paper's tables, figures and claims: what each trains, and its numbers next to ours."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from planned import records
from synthetic_run import with_system

from cdmae.config.load import load
from cdmae.config.reading import gather, read_yaml
from cdmae.errors import InputError
from cdmae.report.facts import Facts, Target
from cdmae.report.page import write_exhibit
from cdmae.report.paper import claims, exhibits, published
from cdmae.report.sources import TABLES, exhibit

ROOT = Path(__file__).resolve().parents[2]
DEV = Target("pydocs", "dev")
BY_STATEMENT = {claim.statement: claim for claim in claims.claims()}
LATENCY = {
    "passages": 128,
    "length": 150,
    "batch": {
        "MAE": 0.3, "RetroMAE, in Python": 3900.0, "RetroMAE, ours": 26.0, "SimLM, masks": 1.4,
        "SimLM, generator": 23000.0, "CDMAE": 0.6,
    },
    "growth": {
        "MAE": {"150": 0.01, "512": 0.02}, "RetroMAE, in Python": {"150": 30.0},
        "RetroMAE, ours": {"150": 0.2, "512": 3.0}, "SimLM, masks": {"150": 0.2, "512": 0.3},
        "SimLM, generator": {"150": 180.0}, "CDMAE": {"150": 0.01, "512": 0.01},
    },
}  # fmt: skip


def shipped(*names):
    """The values of a config file of the repository, or of several."""
    overlays = [next(ROOT.glob(f"config/**/{name}.yaml")) for name in names]
    return load(gather(ROOT / "config/config.yaml", overlays)).values()


def measured(config, queries=40, **parts):
    """Facts of a config: random values for every system, target and measure."""
    rng = np.random.default_rng(3)
    index = [f"q{number}" for number in range(queries)]
    planned = exhibits.planned(config)
    values = {key: pd.DataFrame(rng.random(queries), index) for key in planned.values}
    return Facts(config, values, **parts)


def on_ms_marco():
    """A run on MS MARCO dev, DL19 and DL20, with a chain and groups of two sizes."""
    config = synthetic_run.config()
    config["collections"] = {"marco": {"source": "ir_datasets", "dataset": "msmarco-passage"}}
    config["evaluation"]["collections"] = {"marco": ["dev", "dl19", "dl20"]}
    for section in ("encoders", "stages"):
        config[section] = {
            name: {**entry, "collection": "marco"} for name, entry in config[section].items()
        }
    for size in (2, 16):
        with_system(config, f"group-{size}", stage={"queries": 256 // size, "group": size})
        config["report"]["methods"][f"figure 4: {size}"] = f"group-{size}"
    return config


def lines_of(table):
    """The lines of a table by row and kind of line."""
    return table.numbers.set_index(["row", "line"])


# --- what each trains -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "configs", "systems"),
    [
        ("table_main", "", "bm25 cdmae-stage3 mae-stage1 none-stage1"),
        ("table_stages", "", "cdmae-stage1 cdmae-stage2 cdmae-stage3"),
        ("table_beir", "", "bm25 cdmae-stage3"),
        ("table_projection", "ablations", "cdmae-stage1 no-projection"),
        ("table_corpus", "ablations", "cdmae-stage1 general general-domain"),
        ("table_negatives", "ablations", "group-16 group-2 group-4 group-8"),
        ("table_beir", "paper", "bm25 cdmae-stage3 general-stage1"),
        (
            "table_stages",
            "objectives",
            "cdmae-stage1 cocondenser-stage1 cotmae-stage1 master-stage1 retromae-stage1 "
            "simlm-stage1",
        ),
        ("table_nanobeir", "minilm nanobeir", "bm25 fused minilm none-stage1"),
        (
            "table_corpus",
            "paper paper-ablations",
            "cdmae-stage1 domain general-stage1 wikipedia wikipedia-domain",
        ),
        (
            "table_negatives",
            "paper paper-ablations",
            "cdmae-stage1 group-16 group-2 group-4 group-64 group-8",
        ),
    ],
)
def test_a_table_trains_the_systems_that_the_config_names_for_its_rows(name, configs, systems):
    assert sorted(exhibits.wanted(name, shipped(*configs.split()))) == systems.split()


@pytest.mark.parametrize(
    "name", ["table_projection", "table_corpus", "table_negatives", "table_nanobeir"]
)
def test_a_config_without_rows_or_collections_is_told_which_has_them(name):
    with pytest.raises(InputError, match=rf"^{name} needs .*; see config/"):
        exhibits.wanted(name, shipped())


def test_the_job_of_a_table_reads_the_measures_of_its_systems_and_seeds_and_of_no_others(values):
    rows = {"CDMAE, stage 1": "one", "CDMAE, stage 3": "three"}
    values["report"] = {"methods": rows}
    jobs = {job.name: job for job in records(values, "table_stages")}
    measures = {path for path in jobs["table_stages"].inputs if path.startswith("out/measures")}
    assert measures == {"out/measures/one.tsv", "out/measures/three.tsv"}
    files = tuple(f"out/tables/table_stages.{form}" for form in ("csv", "md", "tex"))
    assert jobs["table_stages"].outputs == files
    needs = exhibit(load(values | {"seed": [7, 8]}), "table_stages")["measures"]
    names = ("one", "three", "one@8", "three@8")
    assert needs == {name: f"out/measures/{name}.tsv" for name in names}


def test_every_name_has_a_declaration_and_none_is_of_a_whole_run(values):
    assert {*exhibits.EXHIBITS.index, "table_latency"} == {*TABLES}
    assert not {job.rule for job in records(values)} & {"table", "latency"}


# --- what each shows ------------------------------------------------------------------------------


def test_the_papers_line_is_above_ours_on_the_papers_data():
    facts = measured(on_ms_marco())
    found = lines_of(exhibits.table("table_main", facts))
    column = "msmarco dev, MRR@10"
    ours = 100 * facts.value("cdmae-stage3", Target("marco", "dev"), "RR@10")
    assert found.loc[("CDMAE (distilled)", "paper"), column] == 41.7
    assert found.loc[("CDMAE (distilled)", "ours"), column] == pytest.approx(ours)
    assert found.loc[("uniform masks", "ours"), "from"] == "mae-stage1"
    assert ("uniform masks", "paper") not in found.index
    papers = [row for row, line in found.index if line == "paper"]
    assert len(papers) == len(published.rows("table 1")) + len(published.rows("further results"))
    figure = lines_of(exhibits.table("table_negatives", facts))
    both = [
        facts.value("group-16", Target("marco", split), "nDCG@10") for split in ("dl19", "dl20")
    ]
    column = "msmarco dl19 and dl20, nDCG@10"
    assert figure.loc[("16", "ours"), column] == pytest.approx(50 * sum(both))
    assert figure.loc[("64", "paper"), column] == 67.5


def test_elsewhere_the_published_number_has_a_column_of_its_own():
    facts = measured(synthetic_run.config())
    table = exhibits.table("table_main", facts)
    found = lines_of(table)
    there = "published: msmarco dev, MRR@10"
    value = 100 * facts.value("bm25", DEV, "RR@10")
    assert found.loc[("BM25", "ours"), "pydocs dev, MRR@10"] == pytest.approx(value)
    assert found.loc[("BM25", "ours"), there] == 18.5
    colbert = found.loc[("ColBERTv2 (distilled, several vectors)", "paper")]
    assert colbert[there] == 39.7 and np.isnan(colbert["pydocs dev, MRR@10"])
    assert "ours alone: pydocs" in table.caption


def test_beir_has_its_collections_down_and_an_average_where_all_are_there():
    config = on_ms_marco()
    names = [key.dataset for key in published.rows("table 3")["CDMAE"].values]
    sets = [name for name in names if name not in ("cqadupstack", "average")]
    more = {name: ["test"] for name in [*sets, "cqadupstack-tex", "cqadupstack-unix"]}
    config["evaluation"]["collections"] |= more
    facts = measured(config)
    table = exhibits.table("table_beir", facts).numbers.set_index("collection")
    heads = [f"{name}, nDCG@10" for name in (*sets, "cqadupstack", "average")]
    assert list(table.index) == heads
    average = table.loc["average, nDCG@10"]
    assert (average["CDMAE, paper"], average["Contriever, paper"]) == (49, 46.6)
    means = [facts.value("bm25", Target(name, "test"), "nDCG@10") for name in sets]
    forums = [
        facts.value("bm25", Target(f"cqadupstack-{name}", "test"), "nDCG@10")
        for name in ("tex", "unix")
    ]
    mean = 100 * (sum(means) + sum(forums) / 2) / 14
    assert average["BM25, ours"] == pytest.approx(mean)
    del facts.config["evaluation"]["collections"]["scifact"]
    table = exhibits.table("table_beir", measured(facts.config)).numbers.set_index("collection")
    assert np.isnan(table.loc["average, nDCG@10", "CDMAE, paper"]), "of fewer collections"


def test_nano_beir_is_compared_with_its_own_published_numbers():
    facts = measured(shipped("minilm", "nanobeir"))
    table = exhibits.table("table_nanobeir", facts).numbers.set_index("collection")
    names = list(read_yaml(ROOT / "config/overlays/nanobeir.yaml")["collections"])
    assert list(table.index) == [f"{name}, nDCG@10" for name in (*names, "average")]
    assert table.loc["nano-arguana, nDCG@10", "BM25, paper"] == 46.5
    means = [facts.value("minilm", Target(name, "test"), "nDCG@10") for name in names]
    average = table.loc["average, nDCG@10"]
    assert average["all-MiniLM-L6-v2, ours"] == pytest.approx(100 * np.mean(means))
    assert average["all-MiniLM-L6-v2, paper"] == 56.23


def test_latency_in_milliseconds_and_as_multiples_of_maes():
    table = exhibits.table("table_latency", Facts({}, latency=LATENCY))
    row = table.numbers.set_index("form").loc["CDMAE"]
    found = [row[head] for head in ("paper, ms", "ours, ms", "paper, of MAE", "ours, of MAE")]
    assert found == pytest.approx([1.1, 0.6, 2.75, 2])
    assert table.texts.set_index("form").loc["RetroMAE, in Python", "ms, n = 512"] == ""


def test_files_of_a_table(tmp_path):
    facts = synthetic_run.make(tmp_path / "run", targets={"pydocs": {"dev": 20}}, parts=())
    write_exhibit("table_main", facts, tmp_path / "tables")
    read = pd.read_csv(tmp_path / "tables/table_main.csv").set_index(["row", "line"])
    assert read.loc[("CDMAE (distilled)", "ours"), "from"] == "cdmae-stage3"
    for form in ("md", "tex"):
        assert "cdmae-stage3" in (tmp_path / f"tables/table_main.{form}").read_text()


# --- claims ---------------------------------------------------------------------------------------


def with_gain(gain, queries=200, **parts):
    """Facts in which importance-aware masks gain as much on every other query."""
    facts = measured(synthetic_run.config(), queries, **parts)
    moved = facts.values["mae-stage1", DEV, "RR@10"] + np.array(
        [[0.0], [2 * gain]] * (queries // 2)
    )
    values = {**facts.values, ("cdmae-stage1", DEV, "RR@10"): moved}
    return dataclasses.replace(facts, values=values)


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [
        (0.05, "true (one training)"),
        (-0.05, "false (one training)"),
        (0.0, claims.UNDECIDED),
    ],
)
def test_a_claim_is_true_false_or_undecided(gain, outcome):
    evidence = claims.score(claims.claims()[0], with_gain(gain))
    assert evidence.outcome == outcome
    assert evidence.here.replace("\N{MINUS SIGN}", "-") == (f"{100 * gain:+.1f}" if gain else "0.0")
    assert evidence.compared == "cdmae-stage1 over mae-stage1: pydocs dev, MRR@10"


def test_what_the_config_does_not_have_is_not_tested():
    facts = with_gain(0.05, masked_terms={"cdmae": synthetic_run.masked_terms()})
    tested = claims.scored(facts)["claim"].tolist()
    assert "A projection of the bottleneck helps" not in tested
    assert "Hard negatives: stage 2 beats stage 1" in tested and len(tested) < len(BY_STATEMENT)


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("Pre-training on the collection brings substantial improvements", "\N{EN DASH}"),
        ("Hard negatives: stage 2 beats stage 1", "+1.4"),
        ("The method beats CoT-MAE after stage 1", "+2.0"),
        (
            "Importance-aware decoder masks beat uniform ones on collections without training "
            "(paper: over RetroMAE)",
            "+2.0",
        ),
        ("More hard negatives help, at the same number of passages a step", "+3.1"),
        ("Pre-training on a general corpus first helps", "+0.9"),
    ],
)
def test_the_papers_gains_are_those_of_its_tables(statement, number):
    assert claims.papers_number(BY_STATEMENT[statement]) == number


def test_the_share_of_stop_words_decides_its_claim():
    plain = with_gain(0.0)
    assert claims.fewer_stop_words(plain) is None
    facts = with_gain(0.0, masked_terms={"cdmae": synthetic_run.masked_terms()})
    assert claims.fewer_stop_words(facts).outcome == claims.TRUE
