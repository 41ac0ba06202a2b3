"""The paper's tables and claims: what each trains, and its numbers next to ours."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from planned import plan
from synthetic_run import MASKED_TERMS, mean, with_system

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.report.facts import Target
from cdmae.report.page import write_exhibit
from cdmae.report.paper import claims, exhibits, published

ROOT = Path(__file__).resolve().parents[2]


def shipped(*names):
    """A config of the repository, or an overlay of several."""
    overlays = [next(ROOT.glob(f"config/**/{name}.yaml")) for name in names]
    return load(gather(ROOT / "config/config.yaml", overlays))


def measured(values, folder):
    """The facts of a run with few queries on every target."""
    collections = values["evaluation"]["collections"]
    targets = {name: dict.fromkeys(splits, 4) for name, splits in collections.items()}
    return synthetic_run.make(folder, values, targets=targets, trained=False)


def on_ms_marco():
    """A run on MS MARCO dev, DL19 and DL20, with groups of two sizes."""
    config = synthetic_run.config()
    config["collections"]["marco"] = {"source": "ir_datasets", "dataset": "msmarco-passage"}
    config["evaluation"]["collections"] = {"marco": ["dev", "dl19", "dl20"]}
    for stage in config["stages"].values():
        stage["collection"] = "marco"
    for size in (2, 16):
        with_system(config, f"group-{size}", stage={"queries": 256 // size, "group": size})
        config["report"]["methods"][f"figure 4: {size}"] = f"group-{size}"
    return config


def lines_of(table):
    """The lines of a table by row and kind of line."""
    return table.numbers.set_index(["row", "line"])


@pytest.mark.parametrize(
    ("name", "configs", "systems"),
    [
        ("table_main", "", "bm25 cdmae-stage3 mae-stage1 none-stage1"),
        ("table_beir", "paper", "bm25 cdmae-stage3 general-stage1"),
        ("table_projection", "ablations", "cdmae-stage1 no-projection"),
        ("table_corpus", "ablations", "cdmae-stage1 general general-domain"),
        ("table_negatives", "ablations", "group-16 group-2 group-4 group-8"),
        ("table_nanobeir", "minilm nanobeir", "bm25 fused minilm none-stage1"),
    ],
)
def test_a_table_shows_the_systems_that_the_config_names_for_its_rows(name, configs, systems):
    config = shipped(*configs.split())
    assert sorted(exhibits.wanted(name, config)) == systems.split()


def test_a_table_is_made_on_request_from_the_measures(values):
    values["report"] = {"methods": {"CDMAE, stage 1": "one"}}
    table = plan(values, "table_stages")["table", "table_stages"]
    assert "out/measured/one.tsv" in table.reads
    assert table.outputs == [f"out/tables/table_stages.{form}" for form in ("csv", "md", "tex")]
    assert "table" not in {rule for rule, _ in plan(values)}


def test_the_papers_line_is_above_ours_on_the_papers_data(tmp_path):
    facts = measured(on_ms_marco(), tmp_path)
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
    both = [mean(facts, "group-16", Target("marco", name), "nDCG@10") for name in ("dl19", "dl20")]
    column = "msmarco dl19 and dl20, nDCG@10"
    assert figure.loc[("16", "ours"), column] == pytest.approx(50 * sum(both))
    assert figure.loc[("64", "paper"), column] == 67.5


def test_elsewhere_the_published_number_has_a_column_of_its_own(tmp_path):
    facts = synthetic_run.make(tmp_path / "run", targets={"pydocs": {"dev": 20}}, trained=False)
    paths = [facts.at("measures", system=name) for name in facts.config.systems]
    write_exhibit("table_main", facts.config, paths, tmp_path / "tables")
    found = pd.read_csv(tmp_path / "tables/table_main.csv").set_index(["row", "line"])
    there = "published: msmarco dev, MRR@10"
    value = 100 * mean(facts, "bm25", Target("pydocs", "dev"))
    assert found.loc[("BM25", "ours"), "pydocs dev, MRR@10"] == pytest.approx(value)
    assert found.loc[("BM25", "paper"), there] == 18.5
    colbert = found.loc[("ColBERTv2 (distilled, several vectors)", "paper")]
    assert colbert[there] == 39.7 and np.isnan(colbert["pydocs dev, MRR@10"])
    for form in ("md", "tex"):
        text = (tmp_path / f"tables/table_main.{form}").read_text()
        assert "ours alone: pydocs" in text and "cdmae-stage3" in text


@pytest.mark.parametrize("missing", ["", "scifact"])
def test_beir_has_its_collections_down_and_an_average_where_all_are_there(tmp_path, missing):
    config = on_ms_marco()
    names = [key.dataset for key in published.tables()["table 3"]["CDMAE"].values]
    sets = [name for name in names if name not in ("cqadupstack", "average", missing)]
    more = [*sets, "cqadupstack-tex", "cqadupstack-unix"]
    config["evaluation"]["collections"] |= {name: ["test"] for name in more}
    config["collections"] |= dict.fromkeys(more, config["collections"]["networkx"])
    facts = measured(config, tmp_path)
    table = exhibits.table("table_beir", facts).numbers.set_index("collection")
    assert list(table.index) == [f"{name}, nDCG@10" for name in (*sets, "cqadupstack", "average")]
    average = table.loc["average, nDCG@10"]
    if missing:
        assert np.isnan(average["CDMAE, paper"]), "of fewer collections"
        return
    assert (average["CDMAE, paper"], average["Contriever, paper"]) == (49, 46.6)
    means = [mean(facts, "bm25", Target(name, "test"), "nDCG@10") for name in more]
    whole = 100 * (sum(means[:-2]) + sum(means[-2:]) / 2) / 14
    assert average["BM25, ours"] == pytest.approx(whole)


# --- claims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [(0.05, "true (one training)"), (-0.05, "false (one training)"), (0.0, "undecided")],
)
def test_a_claim_is_true_false_or_undecided(tmp_path, gain, outcome):
    facts = synthetic_run.make(tmp_path, targets={"pydocs": {"dev": 200}}, trained=False)
    target = Target("pydocs", "dev")
    gains = np.array([[0.0], [2 * gain]] * 100)  # on every other query
    moved = facts.values["mae-stage1", target, "RR@10"] + gains
    facts.values["cdmae-stage1", target, "RR@10"] = moved
    claim = claims.scored(facts, None).iloc[0]
    assert claim["outcome"] == outcome
    assert claim["here"].replace("\N{MINUS SIGN}", "-") == (f"{100 * gain:+.1f}" if gain else "0.0")
    assert claim["compared"] == "cdmae-stage1 over mae-stage1: pydocs dev, MRR@10"


def test_only_pairs_of_the_config_are_tested_and_the_papers_gains_are_those_of_its_tables(tmp_path):
    config = on_ms_marco()
    config["report"]["methods"] |= {"figure 4: 64": "group-16", "CoT-MAE, stage 1": "mae-stage1"}
    tested = claims.scored(measured(config, tmp_path), None).set_index("claim")["paper"].to_dict()
    assert tested["Hard negatives: stage 2 beats stage 1"] == "+1.4"
    assert tested["The method beats CoT-MAE after stage 1"] == "+2.0"
    assert tested["More hard negatives help, at the same number of passages a step"] == "+3.1"
    assert tested["Pre-training on the collection brings substantial improvements"] == "\N{EN DASH}"
    assert "A projection of the bottleneck helps" not in tested


def test_the_share_of_stop_words_decides_its_claim():
    assert claims.fewer_stop_words(MASKED_TERMS)["outcome"] == "true"
    turned = dict(zip(MASKED_TERMS, reversed(MASKED_TERMS.values()), strict=True))
    assert claims.fewer_stop_words(turned)["outcome"] == "false"
    equal = dict.fromkeys(MASKED_TERMS, MASKED_TERMS["uniform"])
    assert claims.fewer_stop_words(equal)["outcome"] == "undecided"
