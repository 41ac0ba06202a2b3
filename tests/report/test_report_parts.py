"""The parts that the report is put together from: comparisons, charts, tables, numbers."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta
from functools import partial

import pandas as pd
import pytest
import synthetic_run
from synthetic_run import rows_of, with_system

from cdmae import circumstances, formats
from cdmae.files import read_json, write_json
from cdmae.report import charts, comparisons, facts
from cdmae.report.columns import Column
from cdmae.report.facts import Facts, Target
from cdmae.report.glossary import TERMS, term_of
from cdmae.report.records import benchmarks
from cdmae.report.sections import changes, setting
from cdmae.report.tables import Cell, Table, highlight

DEV = Target("pydocs", "dev")


def run_of(config, values=None):
    """Facts with the measures that are needed to be listed."""
    shown = {name: (values or {}).get(name, [0.1, 0.2]) for name in config["systems"]}
    return Facts(
        config, {(name, DEV, "RR@10"): pd.DataFrame(two, ["a", "b"]) for name, two in shown.items()}
    )


@pytest.mark.parametrize(
    ("changes", "pairs"),
    [
        ({}, [("cdmae-stage1", "mae-stage1")]),
        ({"projection": False}, []),
        ({"decoder_masking": "idf"}, []),
    ],
    ids=["in the masking alone", "in more", "another mask than a uniform one"],
)
def test_pairs_differ_in_the_masking_alone(changes, pairs):
    config = synthetic_run.config()
    config["encoders"]["mae"] |= changes
    assert comparisons.masking_pairs(run_of(config)) == pairs


def test_names_in_a_table_may_break_and_their_signs_stay_text():
    html = Table("name", "Caption", ["system", "mean"], [["a-b/c_d <i>", "1"]]).html()
    assert "a-<wbr>b/<wbr>c_<wbr>d &lt;i&gt;</th>" in html and "&lt;wbr" not in html


def test_chains_with_negatives_of_their_own_are_a_pair_and_lines_of_a_figure():
    config = synthetic_run.config()
    like = config["systems"]["cdmae-stage2"]
    config["systems"]["mae-stage2"] = {**like, "encoder": "mae", "negatives": "mae-stage1"}
    config["report"]["compare"]["mae-stage2"] = ["mae-stage1", "cdmae-stage2"]
    pairs = [("cdmae-stage1", "mae-stage1"), ("cdmae-stage2", "mae-stage2")]
    assert comparisons.masking_pairs(run_of(config)) == pairs
    levels = changes.stages(run_of(config, {"mae-stage2": [0.3, 0.5]})).figures[0]
    assert (
        levels.name == "stages-pydocs-dev" and levels.drawing.count('class="reference"') == 2
    )  # and in the legend
    assert levels.description.endswith(": cdmae from 15 to 15; mae from 15 to 40")


def test_the_system_without_pretraining_is_found_and_stages_follow_the_negatives():
    assert (
        comparisons.not_pretrained(run_of(synthetic_run.config()), "cdmae-stage1") == "none-stage1"
    )
    run = run_of(synthetic_run.config())
    assert comparisons.chains(run) == [["cdmae-stage1", "cdmae-stage2", "cdmae-stage3"]]
    config = with_system(
        synthetic_run.config(), "other", stage={"epochs": 6}, negatives="cdmae-stage2"
    )
    assert comparisons.chains(run_of(config))[1] == ["cdmae-stage1", "cdmae-stage2", "other"]


def test_two_systems_of_one_recipe_are_no_steps_of_a_pretraining():
    config = with_system(
        with_system(synthetic_run.config(), "again"), "early", encoder={"take_step": 300}
    )
    assert comparisons.growth(run_of(with_system(synthetic_run.config(), "again"))) == {}
    config["encoders"]["early"]["snapshot_of"] = "cdmae"
    assert [system for _, system in comparisons.growth(run_of(config))["cdmae"]][:2] == [
        "none-stage1",
        "early",
    ]


def test_changes_name_the_one_setting_and_the_next_stage_is_none():
    config = with_system(synthetic_run.config(), "sigma-4", encoder={"sigma": 4.0})
    config = with_system(config, "group-16", stage={"group": 16, "queries": 16})
    changes = comparisons.changes(run_of(config))
    assert {(change.reference, change.system, change.setting) for change in changes} == {
        ("none-stage1", "cdmae-stage1", "encoder.objective"),
        ("mae-stage1", "cdmae-stage1", "encoder.decoder_masking"),
        ("mae-stage1", "none-stage1", "encoder.objective"),
        ("mae-stage1", "sigma-4", "encoder.decoder_masking"),  # mae-stage1 is the baseline of all
        ("cdmae-stage1", "sigma-4", "encoder.sigma"),
        ("cdmae-stage1", "group-16", "stage.group"),
    }
    sigma = next(change for change in changes if change.system == "sigma-4")
    assert (sigma.before, sigma.after) == ("1", "4")
    config = synthetic_run.config()
    config["stages"]["stage2"] = dict(config["stages"]["stage1"])
    pairs = {(change.reference, change.system) for change in comparisons.changes(run_of(config))}
    assert not pairs & {("cdmae-stage1", "cdmae-stage2"), ("cdmae-stage2", "cdmae-stage1")}


def test_named_pairs_come_first_then_the_baseline_then_every_system():
    config = synthetic_run.config()
    config["report"]["compare"] = {"fused": ["cdmae-stage3"], "*": ["bm25"]}
    run = run_of(config)
    listed = comparisons.compared(run)
    assert listed[0] == ("fused", "cdmae-stage3")
    others = [name for name in run.systems if name != "mae-stage1"]
    assert [pair.system for pair in listed[1:8]] == others
    assert {pair.reference for pair in listed[1:8]} == {"mae-stage1"}
    assert listed[8:] == [(name, "bm25") for name in others if name != "bm25"]
    assert comparisons.chains(run) and not comparisons.is_compared(
        run, "cdmae-stage2", "cdmae-stage1"
    )
    table = changes.stage_table(Column.of(run, DEV))
    assert [row[-1].text for row in table.rows] == 3 * [formats.NONE], "a pair that is not named"


def test_without_any_named_comparison_all_are_compared_with_bm25_or_the_first():
    config = synthetic_run.config()
    config["evaluation"]["baseline"] = ""
    config["report"]["compare"] = {}
    assert {pair.reference for pair in comparisons.compared(run_of(config))} == {"bm25"}
    del config["systems"]["bm25"]
    assert {pair.reference for pair in comparisons.compared(run_of(config))} == {"none-stage1"}


def test_entries_that_differ_in_seeds_have_a_deviation_and_are_no_change():
    config = with_system(synthetic_run.config(), "seed-43", encoder={"seed": 43})
    run = run_of(config, {"cdmae-stage1": [0.1, 0.2], "seed-43": [0.2, 0.3]})
    assert comparisons.repeated(run) == [["cdmae-stage1", "seed-43"]]
    table = changes.seed_table(Column.of(run, DEV))
    row = rows_of(table)["cdmae-stage1 and seed-43"]
    assert float(row["standard deviation"]) == pytest.approx(100 * math.sqrt(2 * 0.05**2), rel=1e-4)
    assert all("seed" not in change.setting for change in comparisons.changes(run))


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (formats.points, 0.1512, "15.1"), (formats.points, math.nan, "\N{EN DASH}"), (formats.signed, 0.024, "+2.4"),
        (formats.signed, -0.0314, "\N{MINUS SIGN}3.1"), (formats.signed, -0.0001, "0.0"),
        (formats.probability, 0.0341, "p = .034"), (formats.probability, 0.0002, "p < .001"),
        (formats.probability, 1.0, "p = 1"), (formats.probability, 0.0497, "p = .0497"),
        (formats.probability, 0.0502, "p = .050"), (partial(formats.interval, 0.0002), 0.013, "+0.02 to +1.3"),
        (partial(formats.interval, -0.013), -0.00004, "\N{MINUS SIGN}1.3 to \N{MINUS SIGN}0.004"),
        (partial(formats.interval, 0.0), 0.0, "0.0 to 0.0"), (formats.measure_name, "RR@10", "MRR@10"),
        (formats.measure_name, "AP", "MAP"), (formats.measure_name, "Rprec", "Rprec"),
        (formats.measure_name, "R@50", "R@50"), (formats.duration, 0.42, "0.4 s"), (formats.duration, 59.7, "1 min"),
        (formats.duration, 312, "5 min 12 s"), (formats.duration, 12000, "3 h 20 min"),
        (formats.duration, 187200, "2 d 4 h"), (formats.memory, 640, "640 MB"), (formats.memory, 1433.6, "1.4 GB"),
        (formats.short_count, 4_402_688, "4.4 million"), (formats.short_count, 20_214, "20.2 thousand"),
        (formats.short_count, 950, "950"), (formats.percent, 0.274, "27 %"),
        (partial(formats.plural, noun="query"), 1, "1 query"),
        (partial(formats.plural, noun="query"), 1618, "1,618 queries"),
    ],
)  # fmt: skip
def test_formats(function, value, text):
    assert function(value).replace("\N{NO-BREAK SPACE}", " ") == text


def test_cells_that_read_equal_are_equally_best():
    column = highlight(
        pd.Series([Cell("15.1", 15.14), Cell("15.1", 15.06), Cell("9.0", 9.0), Cell("8.0", 8.0)])
    )
    assert [cell.best for cell in column] == [True, True, False, False]
    assert [cell.second for cell in column] == [False, False, True, False]


def test_tex_and_markdown_escape_and_csv_has_unrounded_numbers():
    table = Table(
        "t", "caption", ["a|b", "50 %"], [["x_1 & <y", Cell("1.0", 1.01234567, best=True)]]
    )
    assert r"x\_1 \& $<$y & \textbf{1.0} \\" in table.tex()
    assert r"a|b & 50 \% \\" in table.tex()
    lines = [
        "caption",
        "",
        r"| a\|b      |    50 % |",
        "|:----------|--------:|",
        r"| x_1 & \<y | **1.0** |",
        "",
    ]
    assert table.markdown().split("\n") == lines
    assert table.csv() == "a|b,50 %\nx_1 & <y,1.01235\n"


HOSTILE = "=cmd|'/C calc'!A0 [x](javascript:alert(7)) ![i](http://x) &lt; __init__ ~~no~~\n\n\x01\x1b[2J\ufffe\x85 end"


def test_a_text_of_a_collection_stays_one_plain_cell_in_every_form():
    table = Table(
        "t", "caption", ["query", "mean"], [[HOSTILE, Cell("−1.0", -1.0)], ["\t@SUM(1)", "-x"]]
    )
    lines = table.markdown().splitlines()
    assert len(lines) == 6 and not re.search(r"(?<!\\)[\[\]~&]|(?<![\\])__", lines[4])
    assert not re.search(r"\n\s*\n", table.tex().partition("midrule")[2].partition("bottomrule")[0])
    for text in (table.markdown(), table.tex(), table.csv()):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ufffe]", text)
    first, second = (line.split(",") for line in table.csv().splitlines()[1:])
    assert first[0].startswith("'=cmd") and first[-1] == "-1", "a number stays a number"
    assert second == ["'@SUM(1)", "'-x"]


@pytest.mark.parametrize("bad", ["\x00", "\x0b", "\x1b", "\x9b", "\ufffe", "\uffff", "\ud800"])
def test_a_figure_is_well_formed_whatever_stands_in_its_texts(bad):
    word = f"a{bad}b<&"
    figure = charts.rows(
        "f", word, [charts.Row(word, word, bar=1.0)], axis=word, legend=[(word, 0)]
    )
    curve = charts.lines(
        "f", word, [charts.Series(word, range(3), [0, 1, 2])], x_axis=word, y_axis=word
    )
    for one in (figure, curve, charts.stacked("f", word, [figure, curve])):
        assert ElementTree.fromstring(one.standalone().encode()) is not None


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-0.4, 5.2), (3.2, 8.3), (0, 6000), (15.1, 15.9), (0, 0)]
)
def test_ticks_are_few_and_inside(low, high):
    ticks = charts.ticks(low, high)
    assert 1 <= len(ticks) <= 8
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    bottom, top = charts.nice(low, high)
    assert bottom <= low and high <= top


def test_long_labels_wrap_and_stay_inside_and_a_gap_interrupts_a_line():
    label = "a-system-with-a-very-long-name-" * 4
    figure = charts.rows(
        "f", "title", [charts.Row(label, "+1.0", interval=(0.5, 1.0, 1.5), hollow=True)]
    )
    texts = [part.split("<")[0] for part in figure.drawing.split('text-anchor="start">')[1:]]
    assert "".join(texts).startswith(label[:100])
    assert max(map(len, texts)) * charts.LETTER * charts.SIZE <= charts.WIDTH
    figure = charts.lines(
        "f", "title", [charts.Series("a", range(5), [0, 1, math.nan, 3, 4])], x_axis="", y_axis=""
    )
    assert [
        re.sub("[^ML]", "", path) for path in re.findall('<path d="([^"]*)"', figure.drawing)
    ] == ["MLML"]


def test_benchmarks_read_dashes_as_unknown(tmp_path):
    path = tmp_path / "search" / "bm25" / "pydocs.tsv"
    path.parent.mkdir(parents=True)
    path.write_text("s\th:m:s\tmax_rss\tcpu_time\n1.5\t0:00:01\t-\tNA\n")
    (job,) = benchmarks(tmp_path).itertuples(index=False)
    assert (job.rule, job.job, job.seconds) == ("search", "bm25/pydocs", 1.5)
    assert math.isnan(job.memory) and math.isnan(job.cpu)
    assert benchmarks(tmp_path / "nowhere").empty


def test_a_cell_sorts_by_its_number_where_its_text_is_another():
    assert Cell("5 min 12 s", 312.0).order == "312"
    assert [Cell("12.3", 12.31).order, Cell("\N{MINUS SIGN}0.4", -0.41).order] == ["", ""]
    assert Cell("1,618", 1618).order == "" and Cell("words").order == ""


def test_the_terms_of_measures_are_explained():
    assert term_of("MRR(rel=2)@10") == "MRR" and term_of("nDCG@10") == "nDCG"
    assert term_of("R@50") == "R" and term_of("Judged@10") == ""
    assert {"MRR", "nDCG", "Holm", "AMI", "nats"} <= set(TERMS)


def test_the_origin_of_a_run_is_recorded(monkeypatch):
    monkeypatch.setenv(circumstances.COMMAND, json.dumps(["./run", "-n"]))
    found = circumstances.origin()
    assert found["command"] == ["./run", "-n"]
    monkeypatch.setattr(circumstances, "_git", lambda *words: "")
    assert circumstances.origin() == {"command": ["./run", "-n"]}


def test_the_page_has_the_time_from_the_start_of_the_run_and_the_sum_of_its_jobs(
    monkeypatch, tmp_path
):
    begun = datetime.now().astimezone() - timedelta(minutes=9)
    monkeypatch.setenv(circumstances.STARTED, begun.isoformat(sep=" ", timespec="seconds"))
    found = circumstances.circumstances()
    assert found["wall"] >= 540
    path = synthetic_run.make(tmp_path, targets={"pydocs": {"dev": 10}}, parts=["benchmarks"])
    write_json(path, read_json(path) | {"wall": 555.0})
    run = facts.read(path)
    text = " ".join(str(setting.cost(run).text).split())
    assert "took 9 min 15 s from its start to this page" in text
    together = " ".join(formats.duration(run.benchmarks["seconds"].sum()).split())
    assert f"took {together} together" in text


def test_a_command_line_has_no_local_path():
    words = ["./run", "--config", "results=/home/a/b", "../c/d.yaml"]
    assert formats.command_line(words) == "./run --config results=b d.yaml"
