"""The paper's tables and figures as targets: what each pulls and shows, and what it says where it
cannot be made.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from planned import records
from synthetic_run import rows_of, with_system

from cdmae.config.load import load
from cdmae.config.reading import gather, read_yaml
from cdmae.errors import InputError
from cdmae.report.facts import Facts, Target
from cdmae.report.page import write_exhibit
from cdmae.report.paper import exhibits, grids, published
from cdmae.report.paper.methods import methods
from workflow.facts import FIGURES, TABLES, exhibit

ROOT = Path(__file__).resolve().parents[2]
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
    overlays = [ROOT / "config" / f"{name}.yaml" for name in names]
    return load(gather(ROOT / "config/config.yaml", overlays)).values()


def measured(config, queries=40):
    """Facts of a config: random values for every system, target and measure."""
    rng = np.random.default_rng(3)
    index = [f"q{number}" for number in range(queries)]
    planned = grids.planned(config)
    return Facts(config, {key: pd.DataFrame(rng.random(queries), index) for key in planned.values})


def on_ms_marco():
    """A run on MS MARCO dev, DL19 and DL20, with a chain, another one without projection, and
    groups of three sizes.
    """
    config = synthetic_run.config()
    config["collections"] = {"marco": {"source": "ir_datasets", "dataset": "msmarco-passage"}}
    config["evaluation"]["collections"] = {"marco": ["dev", "dl19", "dl20"]}
    for section in ("encoders", "stages"):
        config[section] = {
            name: {**entry, "collection": "marco"} for name, entry in config[section].items()
        }
    with_system(config, "flat", encoder={"projection": False})
    for size in (2, 16):
        with_system(config, f"group-{size}", stage={"queries": 256 // size, "group": size})
    return config


# --- what each pulls ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "configs", "systems"),
    [
        ("table_main", "", "bm25 cdmae-stage3 mae-stage1 none-stage1"),
        ("table_stages", "", "cdmae-stage1 cdmae-stage2 cdmae-stage3"),
        ("table_beir", "", "bm25 cdmae-stage3 mae-stage1 none-stage1"),
        ("table_projection", "ablations", "cdmae-stage1 no-projection"),
        ("table_corpus", "ablations", "cdmae-stage1 general general-domain"),
        ("figure_negatives", "ablations", "group-16 group-2 group-4 group-8"),
        ("table_stages", "paper", "cdmae-stage1 cdmae-stage2 cdmae-stage3"),
        ("table_beir", "paper", "bm25 cdmae-stage3 general-stage1 mae-stage1"),
        ("table_nanobeir", "nanobeir", "bm25 cdmae-stage3 mae-stage1 none-stage1"),
        ("table_nanobeir", "minilm nanobeir", "bm25 cdmae-stage1 mae-stage1 minilm stage3"),
        ("table_corpus", "paper", "cdmae-stage1 general-stage1"),
        (
            "table_corpus",
            "paper paper-ablations",
            "cdmae-stage1 domain general-stage1 wikipedia wikipedia-domain",
        ),
        ("table_projection", "paper paper-ablations", "cdmae-stage1 no-projection"),
        (
            "figure_negatives",
            "paper paper-ablations",
            "cdmae-stage1 group-16 group-2 group-4 group-64 group-8",
        ),
    ],
)
def test_a_table_wants_the_systems_it_shows(name, configs, systems):
    assert sorted(exhibits.wanted(name, shipped(*configs.split())).systems) == systems.split()


def test_table_5_trains_and_shows_each_corpus_from_a_checkpoint_and_from_wikipedia():
    config = shipped("paper", "paper-ablations")
    jobs = {(job.rule, job.name) for job in records(config, "table_corpus")}
    expected = {"cdmae", "domain", "general", "wikipedia", "wikipedia-domain"}
    assert {name for rule, name in jobs if rule == "pretrain"} == expected
    assert {("collection", "wikipedia"), ("train", "wikipedia-domain")} <= jobs
    rows = rows_of(exhibits.table("table_corpus", measured(config)))
    assert [(key[0], key[2]) for key in rows if key[1] == "ours"] == [
        ("general", "general-stage1"), ("general", "wikipedia"), ("domain", "domain"),
        ("general, then domain", "cdmae-stage1"), ("general, then domain", "wikipedia-domain"),
    ]  # fmt: skip
    assert [key[0] for key in rows if key[1] == "paper"] == ["domain", "general, then domain"], (
        "each once"
    )
    config = shipped("ablations")
    with_system(config, "longer", encoder={"steps": 9000})
    assert "longer" not in exhibits.wanted("table_corpus", config).systems


def test_competitors_stand_beside_their_published_rows_if_they_have_the_masks_of_those():
    systems = exhibits.wanted("table_main", shipped("objectives")).systems
    assert {f"{objective}-stage1" for objective in published.OBJECTIVES.values()} <= set(systems)
    assert not {"idf-stage1", "retromae-importance-stage1", "inverse-frequency-stage1"} & set(
        systems
    )
    config = shipped("objectives")
    assert methods(measured(config))["MASTER"] == ["master-stage1"]
    for name in ("master", "master-two"):
        config["encoders"][name]["decoder_masking"] = "whole_word"
    config["encoders"]["cotmae"]["decoder_masking"] = "inverse_frequency"
    assert not {"MASTER", "CoT-MAE"} & methods(measured(config)).keys()


def test_the_config_names_the_system_of_a_method():
    config = on_ms_marco()
    config["report"]["methods"] = {"PAIR": "mae-stage1", "mine": "cdmae-stage2"}
    rows = rows_of(exhibits.table("table_main", measured(config)))
    assert {key[2] for key in rows if key[0] == "PAIR"} == {"paper", "ours", "difference"}
    assert ("PAIR", "distilled", "ours", "mae-stage1") in rows
    assert ("mine", "", "ours", "cdmae-stage2") in rows


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        (
            "table_nanobeir",
            "the collections of NanoBEIR in evaluation, which .*config/nanobeir.yaml",
        ),
        *(
            (name, ".* alone, which this config lacks; see config/ablations.yaml, ")
            for name in ("table_projection", "table_corpus", "figure_negatives")
        ),
    ],
)
def test_what_the_config_lacks_is_named_with_a_config_that_has_it(name, needs):
    with pytest.raises(InputError, match=f"^{name} needs {needs}"):
        exhibits.wanted(name, shipped())


@pytest.mark.parametrize(
    ("checkpoint", "tables"),
    [
        ("Shitao/RetroMAE", ["table_beir"]),
        ("Shitao/RetroMAE_MSMARCO", ["table_main", "table_stages"]),
    ],
)
def test_a_published_start_stands_beside_the_rows_of_what_it_was_pre_trained_on(checkpoint, tables):
    config = shipped("paper")
    config["starts"]["general"]["checkpoint"] = checkpoint
    systems = {
        "general-stage2": {**config["systems"]["cdmae-stage2"], "negatives": "general-stage1"}
    }
    systems["general-stage3"] = {**config["systems"]["cdmae-stage3"], "negatives": "general-stage2"}
    config["systems"] |= {name: {**entry, "encoder": "general"} for name, entry in systems.items()}
    facts = measured(config)
    rows = {
        name: exhibits.GRIDS[name].entries(facts)
        for name in ("table_main", "table_stages", "table_beir")
    }
    assert tables == [
        name
        for name, of in rows.items()
        if any(row.label[0] == "RetroMAE" and row.system for row in of)
    ]


def test_figures_of_masks_need_an_encoder_that_masks_by_importance(values):
    values["encoders"]["cdmae"]["decoder_masking"] = "uniform"
    with pytest.raises(
        InputError, match="figure_sampling needs an encoder with decoder_masking: importance"
    ):
        exhibit(load(values), "figure_sampling")


def test_the_job_of_a_table_reads_the_measures_of_its_systems_and_seeds_and_of_no_others(values):
    values["systems"]["two"] = {
        "kind": "retriever",
        "encoder": "cdmae",
        "stage": "stage1",
        "negatives": "one",
    }
    jobs = {job.name: job for job in records(values, "table_stages", "figure_sampling")}
    measures = {path for path in jobs["table_stages"].inputs if "measures" in path}
    assert measures == {"out/measures/one.tsv", "out/measures/three.tsv"}
    files = tuple(f"out/tables/table_stages.{form}" for form in ("csv", "md", "tex", "html"))
    assert jobs["table_stages"].outputs == files
    shown = {
        path for path in jobs["figure_sampling"].inputs if not path.startswith("cdmae/report/")
    }
    assert shown == {"out/masked_terms/cdmae.json", "config/paper_results.csv"}
    needs = exhibit(load(values | {"seed": [7, 8]}), "table_stages")["measures"]
    assert needs == {
        name: f"out/measures/{name}.tsv" for name in ("one", "three", "one@8", "three@8")
    }


def test_every_name_has_a_declaration_and_none_is_of_a_whole_run(values):
    others = {"table_latency", "table_claims", *exhibits.OF_MASKS}
    assert {*exhibits.GRIDS, *others} == {*TABLES, *FIGURES}
    assert not {job.rule for job in records(values)} & {"table", "figure", "latency"}


# --- what each shows ------------------------------------------------------------------------------


def test_paper_ours_difference_and_band_where_the_data_are_the_papers():
    facts = measured(on_ms_marco())
    rows = rows_of(exhibits.table("table_main", facts))
    ours = 100 * facts.value("cdmae-stage3", Target("marco", "dev"), "RR@10")
    column = "msmarco dev, MRR@10"
    row = {line: rows["CDMAE", "distilled", line, where][column] for line, where in (
        ("paper", "table 1; the paper"), ("ours", "cdmae-stage3"), ("difference", ""),
    )}  # fmt: skip
    assert row["paper"] == "41.7" and float(row["ours"]) == pytest.approx(ours, rel=1e-5)
    assert float(row["difference"]) == pytest.approx(ours - 41.7, rel=1e-4)
    assert (
        rows["DeepCT", "", "paper", "table 1; Dai and Callan 2020"]["msmarco dl20, nDCG@10"]
        == "\N{EN DASH}"
    )
    assert len([key for key in rows if "paper" in key]) == 21 + 15
    source = "further results; README.md (github.com/staoxiao/RetroMAE at 040b0097)"
    assert rows["RetroMAE on MS MARCO", "dense", "paper", source][column] == "39.3"


def test_bm25_with_titles_is_told_from_the_papers_without():
    config = on_ms_marco()
    rows = rows_of(exhibits.table("table_main", measured(config)))
    assert ("BM25", "", "paper", "table 1; Robertson and Zaragoza 2009") in rows
    config["collections"]["marco"]["titles"] = True
    rows = rows_of(exhibits.table("table_main", measured(config)))
    assert {key[1] for key in rows if key[0] == "BM25"} == {
        "ours reads the titles, the paper\u2019s did not"
    }
    assert {key[1] for key in rows if key[0] == "SimLM"} == {"distilled"}


def test_an_earlier_stage_is_not_held_against_a_published_last_one_and_elsewhere_ours_stand_alone():
    config = on_ms_marco()
    with_system(config, "retro", encoder=config["encoders"]["mae"] | {"objective": "retromae"})
    rows = rows_of(exhibits.table("table_main", measured(config)))
    assert ("RetroMAE", "after stage 1", "ours", "retro") in rows
    assert not [key for key in rows if key[0] == "RetroMAE" and key[2] == "difference"]
    stages = rows_of(exhibits.table("table_stages", measured(config)))
    assert ("RetroMAE", "stage 1", "difference", "") in stages
    table = exhibits.table("table_projection", measured(shipped("ablations")))
    assert {key[1] for key in rows_of(table)} == {"ours"}
    assert "ours alone: pydocs" in table.caption


def test_elsewhere_the_published_number_has_a_column_and_further_results_have_rows():
    facts = measured(synthetic_run.config())
    table = exhibits.table("table_main", facts)
    rows = rows_of(table)
    there = "published: msmarco dev, MRR@10"
    ours = rows["BM25", "", "ours", "bm25"]
    value = 100 * facts.value("bm25", Target("pydocs", "dev"), "RR@10")
    assert (
        float(ours["pydocs dev, MRR@10"]) == pytest.approx(value, rel=1e-3)
        and ours[there] == "18.5"
    )
    source = "table 1; Santhanam et al. 2022"
    missing = rows["ColBERTv2", "distilled, several vectors", "published", source]
    assert missing[there] == "39.7" and missing["pydocs dev, MRR@10"] == "\N{EN DASH}"
    splade = [row for key, row in rows.items() if key[:2] == ("SPLADE-v3", "sparse, distilled")]
    assert splade[0][there] == "39.99" and len(splade) == 1
    assert "0a0be296" in next(key[3] for key in rows if key[0] == "SPLADE-v3")
    assert all(row.name and row.kind for row in published.rows("further results").values())


def test_beir_has_its_collections_down_and_an_average_where_all_are_there():
    config = on_ms_marco()
    names = [key.dataset for key in published.rows("table 3")["CDMAE", 0].values]
    sets = [name for name in names if name not in ("cqadupstack", "average")]
    more = {name: ["test"] for name in [*sets, "cqadupstack-tex", "cqadupstack-unix"]}
    config["evaluation"]["collections"] |= more
    facts = measured(config)
    table = exhibits.table("table_beir", facts)
    rows = rows_of(table)
    assert table.caption.endswith("table 3: zero-shot, nDCG@10")
    assert list(rows) == [*sets, "cqadupstack", "average"]
    row = rows["average"]
    assert (row["CDMAE, paper"], row["Contriever, paper"]) == ("49", "46.6")
    means = [facts.value("bm25", Target(name, "test"), "nDCG@10") for name in sets]
    forums = [
        facts.value("bm25", Target(f"cqadupstack-{name}", "test"), "nDCG@10")
        for name in ("tex", "unix")
    ]
    mean = 100 * (sum(means) + sum(forums) / 2) / 14
    assert float(row["BM25, ours, bm25"]) == pytest.approx(mean, rel=1e-4)


def test_nano_beir_stands_beside_what_others_published_of_it_and_not_beside_beir():
    facts = measured(shipped("minilm", "nanobeir"))
    table = exhibits.table("table_nanobeir", facts)
    rows = rows_of(table)
    assert table.caption == "NanoBEIR: zero-shot, published by others and ours, nDCG@10"
    assert list(rows) == [*read_yaml(ROOT / "config/nanobeir.yaml")["collections"], "average"]
    ours = 100 * facts.value("bm25", Target("nano-arguana", "test"), "nDCG@10")
    row = rows["nano-arguana"]
    assert row["BM25, published"] == "46.5" and float(row["BM25, difference"]) == pytest.approx(
        ours - 46.5, rel=1e-4
    )
    assert (
        rows["nano-nfcorpus"]["BM25, published"] == "\N{EN DASH}"
    )  # whose judgments there are others
    targets = [
        Target(name, "test") for name in read_yaml(ROOT / "config/nanobeir.yaml")["collections"]
    ]
    mean = 100 * sum(facts.value("minilm", target, "nDCG@10") for target in targets) / 13
    average = rows["average"]
    assert float(average["all-MiniLM-L6-v2, ours, minilm"]) == pytest.approx(mean, rel=1e-4)
    theirs = (
        "all-MiniLM-L6-v2, published",
        "BM25 of mteb, published",
        "BM25 of the blog, published",
    )
    assert [average[line] for line in theirs] == ["56.23", "57.29", "45.18"]
    section = exhibits.section(facts)
    assert [shown.name for shown in section.tables] == ["claims", "table_nanobeir"]
    assert "only the signs of the differences" in str(section.text)
    assert "Published numbers on NanoBEIR, and ours</summary>" in str(section.text)
    del facts.config["evaluation"]["collections"]["nano-nq"]
    rows = rows_of(exhibits.table("table_nanobeir", measured(facts.config)))
    assert rows["average"]["BM25 of mteb, published"] == "\N{EN DASH}"


def test_projection_and_negatives_stand_beside_tables_4_and_figure_4():
    facts = measured(on_ms_marco())
    rows = rows_of(exhibits.table("table_projection", facts))
    assert rows["w/o projection", "paper", "table 4; the paper"]["msmarco dl19, nDCG@10"] == "66.3"
    assert ("w/o projection", "ours", "flat") in rows and (
        "w/ projection",
        "ours",
        "cdmae-stage1",
    ) in rows
    rows = rows_of(exhibits.table("figure_negatives", facts))
    both = [
        facts.value("group-16", Target("marco", split), "nDCG@10") for split in ("dl19", "dl20")
    ]
    column = "msmarco dl19 and dl20, nDCG@10"
    assert float(rows["16", "ours", "group-16"][column]) == pytest.approx(50 * sum(both), rel=1e-4)
    assert rows["64", "paper", "figure 4; the paper"][column] == "67.5"
    picture = exhibits.figure("figure_negatives", facts).standalone()
    assert "the paper" in picture and picture.count("<path") == 4


@pytest.mark.parametrize(
    "name",
    [
        exhibit
        for exhibit in exhibits.GRIDS
        if not exhibit.startswith(("table_main", "table_beir", "table_nano"))
    ],
)
def test_an_exhibit_alone_shows_what_it_shows_of_a_whole_run(name):
    """Its job has the measures of its own systems and of no others."""
    whole = measured(shipped("ablations"))
    systems = exhibits.wanted(name, whole.config).systems
    alone = Facts(
        whole.config, {key: values for key, values in whole.values.items() if key[0] in systems}
    )
    assert exhibits.table(name, alone).csv() == exhibits.table(name, whole).csv()
    assert len(exhibits.table(name, alone).rows) >= len(systems)


def test_latency_in_milliseconds_and_as_multiples_of_maes():
    rows = rows_of(exhibits.table("table_latency", Facts({}, latency=LATENCY)))
    row = rows["CDMAE"]
    assert (row["paper, ms"], row["ours, ms"], row["paper, of MAE"], row["ours, of MAE"]) == (
        "1.1",
        "0.6",
        "2.75",
        "2",
    )
    assert rows["SimLM, generator"]["paper, ms"] == "2.8"
    assert rows["RetroMAE, in Python"]["ms, n = 512"] == "\N{EN DASH}"


def test_files_of_an_exhibit(tmp_path):
    facts = synthetic_run.make(
        tmp_path / "run", targets={"pydocs": {"dev": 20}}, parts=("masked_terms",)
    )
    for name in ("table_main", *exhibits.OF_MASKS):
        write_exhibit(name, facts, tmp_path / "tables")
    names = sorted(path.name for path in (tmp_path / "tables").iterdir())
    assert names == sorted(
        [*(f"table_main.{form}" for form in ("csv", "md", "tex", "html")),
         *(f"{name}.{form}" for name in exhibits.OF_MASKS for form in ("svg", "csv"))]
    )  # fmt: skip
    assert "hokey,8.1,0,0.46," in (tmp_path / "tables" / "figure_sampling.csv").read_text()
