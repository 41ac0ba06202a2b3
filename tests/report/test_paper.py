"""The paper's tables, figures and claims: what each trains, and its numbers next to ours."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from planned import records
from synthetic_run import mean, with_system

from cdmae.config.load import load
from cdmae.config.reading import gather, read_yaml
from cdmae.errors import InputError
from cdmae.report.facts import Facts, Target
from cdmae.report.page import write_exhibit
from cdmae.report.paper import claims, exhibits, published
from cdmae.report.sources import TABLES, exhibit

ROOT = Path(__file__).resolve().parents[2]
DEV = Target("pydocs", "dev")


def shipped(*names):
    """The values of a config file of the repository, or of several."""
    overlays = [next(ROOT.glob(f"config/**/{name}.yaml")) for name in names]
    return load(gather(ROOT / "config/config.yaml", overlays)).values()


def measured(config, queries=40, **parts):
    """Facts of a config: random values for every system, target and measure."""
    rng = np.random.default_rng(3)
    index = [f"q{number}" for number in range(queries)]
    facts = Facts(config, **parts)
    for name in config["systems"]:
        for collection, splits in facts.evaluation.collections.items():
            for split in splits:
                for measure in facts.evaluation.measured(collection, split):
                    values = pd.DataFrame({name: rng.random(queries)}, index)
                    facts.values[name, Target(collection, split), measure] = values
    return facts


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


def test_a_table_shows_the_measures_of_its_systems_and_seeds_and_of_no_others(values):
    rows = {"CDMAE, stage 1": "one", "CDMAE, stage 3": "three"}
    values["report"] = {"methods": rows}
    jobs = {job.name: job for job in records(values, "table_stages")}
    assert "out/measured/one.tsv" in jobs["table_stages"].inputs
    files = tuple(f"out/tables/table_stages.{form}" for form in ("csv", "md", "tex"))
    assert jobs["table_stages"].outputs == files
    needs = exhibit(load(values | {"seed": [7, 8]}), "table_stages")["measures"]
    names = ("one", "three", "one@8", "three@8")
    assert needs == {name: f"out/measured/{name}.tsv" for name in names}


def test_every_name_has_a_declaration_and_none_is_of_a_whole_run(values):
    assert {*exhibits.EXHIBITS.index} == {*TABLES}
    assert not {job.rule for job in records(values)} & {"table"}


# --- what each shows ------------------------------------------------------------------------------


def test_the_papers_line_is_above_ours_on_the_papers_data():
    facts = measured(on_ms_marco())
    found = lines_of(exhibits.table("table_main", facts))
    column = "msmarco dev, MRR@10"
    ours = 100 * mean(facts, "cdmae-stage3", Target("marco", "dev"))
    assert found.loc[("CDMAE (distilled)", "paper"), column] == 41.7
    assert found.loc[("CDMAE (distilled)", "ours"), column] == pytest.approx(ours)
    assert found.loc[("uniform masks", "ours"), "from"] == "mae-stage1"
    assert ("uniform masks", "paper") not in found.index
    papers = [row for row, line in found.index if line == "paper"]
    tables = published.tables()
    assert len(papers) == len(tables["table 1"]) + len(tables["further results"])
    figure = lines_of(exhibits.table("table_negatives", facts))
    both = [
        mean(facts, "group-16", Target("marco", split), "nDCG@10") for split in ("dl19", "dl20")
    ]
    column = "msmarco dl19 and dl20, nDCG@10"
    assert figure.loc[("16", "ours"), column] == pytest.approx(50 * sum(both))
    assert figure.loc[("64", "paper"), column] == 67.5


def test_elsewhere_the_published_number_has_a_column_of_its_own():
    facts = measured(synthetic_run.config())
    table = exhibits.table("table_main", facts)
    found = lines_of(table)
    there = "published: msmarco dev, MRR@10"
    value = 100 * mean(facts, "bm25", DEV)
    assert found.loc[("BM25", "ours"), "pydocs dev, MRR@10"] == pytest.approx(value)
    assert found.loc[("BM25", "paper"), there] == 18.5
    colbert = found.loc[("ColBERTv2 (distilled, several vectors)", "paper")]
    assert colbert[there] == 39.7 and np.isnan(colbert["pydocs dev, MRR@10"])
    assert "ours alone: pydocs" in table.caption


def test_beir_has_its_collections_down_and_an_average_where_all_are_there():
    config = on_ms_marco()
    names = [key.dataset for key in published.tables()["table 3"]["CDMAE"].values]
    sets = [name for name in names if name not in ("cqadupstack", "average")]
    more = {name: ["test"] for name in [*sets, "cqadupstack-tex", "cqadupstack-unix"]}
    config["evaluation"]["collections"] |= more
    facts = measured(config)
    table = exhibits.table("table_beir", facts).numbers.set_index("collection")
    heads = [f"{name}, nDCG@10" for name in (*sets, "cqadupstack", "average")]
    assert list(table.index) == heads
    average = table.loc["average, nDCG@10"]
    assert (average["CDMAE, paper"], average["Contriever, paper"]) == (49, 46.6)
    means = [mean(facts, "bm25", Target(name, "test"), "nDCG@10") for name in sets]
    forums = [
        mean(facts, "bm25", Target(f"cqadupstack-{name}", "test"), "nDCG@10")
        for name in ("tex", "unix")
    ]
    whole = 100 * (sum(means) + sum(forums) / 2) / 14
    assert average["BM25, ours"] == pytest.approx(whole)
    del facts.config["evaluation"]["collections"]["scifact"]
    table = exhibits.table("table_beir", measured(facts.config)).numbers.set_index("collection")
    assert np.isnan(table.loc["average, nDCG@10", "CDMAE, paper"]), "of fewer collections"


def test_nano_beir_is_compared_with_its_own_published_numbers():
    facts = measured(shipped("minilm", "nanobeir"))
    table = exhibits.table("table_nanobeir", facts).numbers.set_index("collection")
    names = list(read_yaml(ROOT / "config/overlays/nanobeir.yaml")["collections"])
    assert list(table.index) == [f"{name}, nDCG@10" for name in (*names, "average")]
    assert table.loc["nano-arguana, nDCG@10", "BM25, paper"] == 46.5
    means = [mean(facts, "minilm", Target(name, "test"), "nDCG@10") for name in names]
    average = table.loc["average, nDCG@10"]
    assert average["all-MiniLM-L6-v2, ours"] == pytest.approx(100 * np.mean(means))
    assert average["all-MiniLM-L6-v2, paper"] == 56.23


def test_files_of_a_table(tmp_path):
    facts = synthetic_run.make(tmp_path / "run", targets={"pydocs": {"dev": 20}}, parts=())
    write_exhibit("table_main", facts, tmp_path / "tables")
    read = pd.read_csv(tmp_path / "tables/table_main.csv").set_index(["row", "line"])
    assert read.loc[("CDMAE (distilled)", "ours"), "from"] == "cdmae-stage3"
    for form in ("md", "tex"):
        assert "cdmae-stage3" in (tmp_path / f"tables/table_main.{form}").read_text()


# --- claims ---------------------------------------------------------------------------------------


def with_gain(gain, **parts):
    """Facts in which importance-aware masks gain as much on every other query."""
    facts = measured(synthetic_run.config(), 200, **parts)
    gains = np.array([[0.0], [2 * gain]] * 100)
    moved = facts.values["mae-stage1", DEV, "RR@10"] + gains
    facts.values["cdmae-stage1", DEV, "RR@10"] = moved
    return facts


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [(0.05, "true (one training)"), (-0.05, "false (one training)"), (0.0, "undecided")],
)
def test_a_claim_is_true_false_or_undecided(gain, outcome):
    claim = claims.scored(with_gain(gain)).iloc[0]
    assert claim["outcome"] == outcome
    assert claim["here"].replace("\N{MINUS SIGN}", "-") == (f"{100 * gain:+.1f}" if gain else "0.0")
    assert claim["compared"] == "cdmae-stage1 over mae-stage1: pydocs dev, MRR@10"


def test_only_pairs_of_the_config_are_tested_and_the_papers_gains_are_those_of_its_tables():
    config = on_ms_marco()
    config["report"]["methods"] |= {"figure 4: 64": "group-16", "CoT-MAE, stage 1": "mae-stage1"}
    tested = claims.scored(measured(config)).set_index("claim")["paper"].to_dict()
    assert tested["Hard negatives: stage 2 beats stage 1"] == "+1.4"
    assert tested["The method beats CoT-MAE after stage 1"] == "+2.0"
    assert tested["More hard negatives help, at the same number of passages a step"] == "+3.1"
    assert tested["Pre-training on the collection brings substantial improvements"] == "\N{EN DASH}"
    assert "A projection of the bottleneck helps" not in tested


def test_the_share_of_stop_words_decides_its_claim():
    assert claims.fewer_stop_words(with_gain(0.0)) is None
    facts = with_gain(0.0, masked_terms={"cdmae": synthetic_run.masked_terms()})
    assert claims.fewer_stop_words(facts)["outcome"] == "true"
