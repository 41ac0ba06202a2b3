import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pandas as pd
import pytest
import synthetic_run

from cdmae.errors import InputError
from cdmae.evaluation import significance
from cdmae.report import charts, facts, palette
from cdmae.report.facts import Difference, Target
from cdmae.report.page import write
from cdmae.report.sections import (
    answer,
    cost,
    limits,
    masking,
    mean_difference,
    paper,
    results,
    stages,
    training,
    zero_shot,
    zero_shot_sets,
)

DEV = Target("pydocs", "dev")
FEW = {"pydocs": {"dev": 30}}
SMALL = {"pydocs": {"dev": 150, "test": 120}, "scikit-learn": {"test": 110}, "networkx": {"test": 130}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The facts of a whole run with few queries."""
    return facts.read(synthetic_run.make(tmp_path_factory.mktemp("run"), targets=SMALL))


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    """The folder of its report."""
    folder = tmp_path_factory.mktemp("page") / "report"
    write(run, folder)
    return folder


def made(folder, **changes):
    """The facts of a run with changed entries in the config; None removes a key."""
    values = synthetic_run.config()
    parts = changes.pop("parts", ("trained", "masked_terms", "benchmarks"))
    targets = changes.pop("targets", SMALL)
    for section, entries in changes.items():
        values[section] = entries
    return facts.read(synthetic_run.make(folder, values, targets=targets, parts=parts))


def rows_of(table):
    return {row[0]: row[1:] for row in csv.reader(io.StringIO(table.csv()))}


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_tables_hold_the_means_of_the_measures(run):
    found = rows_of(results.measures_table(run, DEV))
    assert found["system"] == ["MRR@10", "R@50", "R@1000", "nDCG@10"]
    for name in run.systems:
        for head, measure in zip(found["system"], synthetic_run.MEASURES, strict=True):
            mean = run.values[name, DEV, measure].mean()
            assert float(found[name][found["system"].index(head)]) == pytest.approx(100 * mean, rel=1e-5)


def test_a_target_has_the_measures_of_its_own_lowest_relevant_grade(tmp_path):
    """And no gaps for those of others; what a system is at stands in the first of them."""
    evaluation = {**synthetic_run.config()["evaluation"], "relevant": {"pydocs": {"test": 2}}}
    run = made(tmp_path / "run", evaluation=evaluation, targets={"pydocs": {"dev": 20, "test": 10}}, parts=())
    heads = ["MRR(rel=2)@10", "R(rel=2)@50", "R(rel=2)@1000", "nDCG@10"]
    assert rows_of(results.measures_table(run, Target("pydocs", "test")))["system"] == heads
    assert rows_of(results.measures_table(run, DEV))["system"] == ["MRR@10", "R@50", "R@1000", "nDCG@10"]
    assert run.main_measure(Target("pydocs", "test")) == "RR(rel=2)@10"
    shown = rows_of(stages.stage_table(run, Target("pydocs", "test")))["system"]
    assert shown[1:4] == ["MRR(rel=2)@10", "R(rel=2)@50", "R(rel=2)@1000"]
    write(run, tmp_path / "report")


def test_best_of_a_column_is_bold_and_second_underlined(run):
    table = results.measures_table(run, DEV)
    values = {name: round(100 * run.value(name, DEV, "RR@10"), 1) for name in run.systems}
    order = sorted(values, key=values.get, reverse=True)
    shown = {row[0]: row[1] for row in table.rows}
    assert [name for name in run.systems if shown[name].best] == [order[0]]
    assert [name for name in run.systems if shown[name].second] == [order[1]]
    assert f"<b>{values[order[0]]}</b>" in table.html()
    assert f"**{values[order[0]]}**" in table.markdown()
    assert rf"\textbf{{{values[order[0]]}}}" in table.tex()


def test_marks_stand_where_the_corrected_test_is_significant(run):
    names = [name for name in run.systems if name != run.baseline]
    found = [run.difference(name, run.baseline, DEV, "RR@10") for name in names]
    corrected = dict(zip(names, significance.holm([each.p for each in found]), strict=True))
    column = dict(zip(run.systems, results.measure_column(run, DEV, "RR@10"), strict=True))
    assert not column[run.baseline].mark
    for name, difference in zip(names, found, strict=True):
        expected = "" if corrected[name] >= 0.05 else "\N{BLACK UP-POINTING TRIANGLE}"
        if expected and difference.difference < 0:
            expected = "\N{BLACK DOWN-POINTING TRIANGLE}"
        assert column[name].mark == expected
    assert any(cell.mark for cell in column.values())
    assert not all(cell.mark for name, cell in column.items() if name != run.baseline)


def test_marks_are_hollow_within_the_noise_of_a_seed(run, monkeypatch):
    before = [cell.mark for cell in results.measure_column(run, DEV, "RR@10")]
    monkeypatch.setattr(results, "noise", lambda *_: 1.0)
    after = [cell.mark for cell in results.measure_column(run, DEV, "RR@10")]
    hollow = {results.SURE[gain]: results.DOUBTFUL[gain] for gain in (True, False)} | {"": ""}
    assert any(before) and after == [hollow[mark] for mark in before]


def test_the_overview_has_every_system_on_every_collection(run):
    found = rows_of(results.section(run).tables[0])
    names = ["pydocs dev, MRR@10", "pydocs test, MRR@10", "scikit-learn, zero-shot, nDCG@10"]
    assert found["system"] == [*names, "networkx, zero-shot, nDCG@10"]
    columns = {0: (DEV, "RR@10"), 3: (Target("networkx", "test"), "nDCG@10")}
    for name in run.systems:
        for place, (target, measure) in columns.items():
            assert float(found[name][place]) == pytest.approx(100 * run.value(name, target, measure), rel=1e-4)


def test_the_figure_of_differences_is_not_flattened_by_bm25(run):
    figure = results.against_baseline(run, "pydocs dev", [[DEV]])
    shown = [part.rpartition(" ")[0] for part in figure.description.rpartition(": ")[2].split(", ")]
    assert shown == ["none-stage1", "cdmae-stage1", "cdmae-stage2", "cdmae-stage3", "cdmae-reranker"]


def test_stage_table_shows_what_each_stage_added(run):
    found = rows_of(stages.stage_table(run, DEV))
    gain = run.value("cdmae-stage2", DEV, "RR@10") - run.value("cdmae-stage1", DEV, "RR@10")
    assert list(found)[1:] == ["cdmae-stage1", "cdmae-stage2", "cdmae-stage3"]
    assert found["cdmae-stage2"][0] == "cdmae-stage1"
    assert float(found["cdmae-stage2"][4]) == pytest.approx(100 * gain, rel=1e-4)
    low, high = map(float, found["cdmae-stage2"][5].split(" to "))
    assert low < 100 * gain < high


def test_zero_shot_average_is_over_collections(run):
    (table,) = zero_shot.section(run).tables
    found = rows_of(table)
    assert found["system"] == ["scikit-learn", "networkx", "average"]
    for name in run.systems:
        first, second, mean = map(float, found[name])
        assert mean == pytest.approx((first + second) / 2, rel=1e-4)
        assert first == pytest.approx(100 * run.value(name, Target("scikit-learn", "test"), "nDCG@10"), rel=1e-4)


def test_many_zero_shot_collections_stand_in_rows_and_forums_are_one(tmp_path):
    names = [f"set-{index}" for index in range(9)] + ["cqadupstack-tex", "cqadupstack-unix"]
    targets = {"pydocs": {"dev": 30}} | {name: {"test": 20 + index} for index, name in enumerate(names)}
    systems = {name: synthetic_run.config()["systems"][name] for name in ("bm25", "mae-stage1", "cdmae-stage1")}
    run = made(tmp_path, systems=systems, targets=targets, parts=())
    (table,) = zero_shot.section(run).tables
    found = rows_of(table)
    assert list(found)[1:] == [*names[:9], "cqadupstack", "average"]
    both = [run.value("bm25", Target(name, "test"), "nDCG@10") for name in names[9:]]
    place = run.systems.index("bm25")
    assert float(found["cqadupstack"][place]) == pytest.approx(50 * sum(both), rel=1e-4)
    mean = sum(float(found[name][place]) for name in list(found)[1:-1]) / 10
    assert float(found["average"][place]) == pytest.approx(mean, rel=1e-4)
    overview = rows_of(results.section(run).tables[0])
    assert overview["system"][1] == "mean of 10 collections, zero-shot, nDCG@10"
    assert float(overview["bm25"][1]) == pytest.approx(mean, rel=1e-4)


def test_a_mean_difference_counts_every_collection_once(tmp_path):
    names = ("a", "cqadupstack-tex", "cqadupstack-unix")
    targets = {"pydocs": {"dev": 30}} | {name: {"test": 20} for name in names}
    systems = {name: synthetic_run.config()["systems"][name] for name in ("bm25", "mae-stage1")}
    run = made(tmp_path, systems=systems, targets=targets, parts=())
    a, tex, unix = (run.difference("bm25", "mae-stage1", Target(name, "test"), "nDCG@10") for name in names)
    sets = list(zero_shot_sets(run).values())
    expected = (a.difference + (tex.difference + unix.difference) / 2) / 2
    assert mean_difference(run, "bm25", "mae-stage1", sets).difference == pytest.approx(expected)
    assert mean_difference(run, "bm25", "nothing", sets) is None


@pytest.mark.parametrize(
    ("difference", "p", "expected"),
    [(0.02, 0.001, "better"), (-0.02, 0.001, "worse"), (0.02, 0.2, "open"), (0.002, 0.001, "open")],
)
def test_verdict_needs_the_test_and_more_than_the_noise_of_a_seed(difference, p, expected):
    found = Difference(0.1, 0.1 - difference, difference, p, difference - 0.001, difference + 0.001, 1000)
    assert answer.verdict(found, 0.003) == expected


def test_the_first_screen_states_difference_sureness_and_cost(run, page):
    found = run.difference("cdmae-stage1", "mae-stage1", DEV, "RR@10")
    text = re.sub(r"<[^>]+>", "", (page / "index.html").read_text().split('id="setting"')[0])
    assert f"{100 * found.difference:+.1f} points" in text.replace("\N{MINUS SIGN}", "-")
    assert "150 queries" in text and "seed 42" in text
    assert "4.5\N{NO-BREAK SPACE}s" in text  # 3.1 s of counting and 1.4 s of scoring


def test_cost_adds_up(run):
    found = rows_of(cost.section(run).tables[0])
    assert float(found["pre-training"][1]) == pytest.approx(190 + 190 + 3.2)
    assert float(found["all"][0]) == len(run.benchmarks)
    assert found["measures"][3] == "\N{EN DASH}"  # too short for Snakemake to sample


def test_curves_are_averaged(run):
    steps, values = training.curve(run.encoders["mae"], "decoder_loss")
    assert len(steps) == training.POINTS == len(values)
    whole = run.encoders["mae"].curve["decoder_loss"]
    assert sum(values) / len(values) == pytest.approx(whole.mean(), rel=1e-6)


def test_a_steep_beginning_does_not_flatten_a_curve():
    steep = charts.Series("a", list(range(100)), [90.0, 50.0, 9.0] + [4.0] * 97)
    (figure,) = training._figures("loss", "Loss", [steep])
    assert figure.description == "Loss: a from 4 to 4" and ">90<" not in figure.drawing
    gentle = charts.Series("a", list(range(100)), [7.9] + [4.0] * 99)
    (figure,) = training._figures("loss", "Loss", [gentle])
    assert figure.description == "Loss: a from 7.9 to 4"
    assert training._figures("loss", "Loss", []) == []


def test_masked_terms_and_sigma(run):
    found = run.masked_terms["cdmae"]
    terms = rows_of(masking.terms_table(found))
    assert terms["1"] == ["the", "0.061", "array", "0.012"]
    sweep = masking.sigma_sweep(found["sigma"])
    assert [row[0].text for row in sweep.rows] == ["0", "1", "2", "4", "\N{INFINITY}"]


def test_the_papers_tables_stand_in_the_report_where_its_collections_were_measured(tmp_path):
    collections = {"msmarco": {"source": "msmarco"}, "scifact": {"source": "beir"}}
    values = synthetic_run.config()
    for section in ("encoders", "stages"):
        values[section] = {name: {**each, "collection": "msmarco"} for name, each in values[section].items()}
    targets = {"msmarco": {"dev": 40}, "scifact": {"test": 30}}
    run = made(
        tmp_path, collections=collections, encoders=values["encoders"], stages=values["stages"],
        targets=targets, parts=(),
    )  # fmt: skip
    found = paper.section(run)
    assert [table.name for table in found.tables] == ["claims", "table_main", "table_stages", "table_beir"]
    assert "the heights do not compare" not in found.body


# --- the page --------------------------------------------------------------------------------------------------------


def test_what_a_training_says_of_itself_stands_among_the_limits(run):
    name = "cdmae-stage1"
    noted = replace(run.trained[name], about={**run.trained[name].about, "notes": ["its outputs < moved together"]})
    text = limits.section(replace(run, trained={**run.trained, name: noted})).body
    assert f"<b>Noticed while {name} was trained:</b> its outputs &lt; moved together." in text
    assert "Noticed while" not in limits.section(run).body


def test_the_page_tells_machine_versions_and_config(page):
    text = (page / "index.html").read_text()
    assert "Machine: Linux x86_64, Xeon, 2 cores, 16 GB, no GPU." in re.sub(r"\s+", " ", text)
    assert "pydocs: python 3.12.4, numpy 2.4.6" in text
    assert "\n    decoder_masking: importance\n" in text


def test_equal_facts_give_equal_bytes(run, page, tmp_path):
    write(run, tmp_path / "again")
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (page, tmp_path / "again")
    )
    assert first == second and len(first) > 80


def test_the_page_loads_nothing(page):
    for path in [page / "index.html", *page.glob("tables/*.html"), *page.glob("figures/*.svg")]:
        text = path.read_text()
        links = re.findall(r"""(?:src|href|action|poster|data)\s*=\s*["']([^"']*)""", text)
        assert all(link.startswith(("#", "data:")) for link in links), path
        assert "@import" not in text and "url(" not in text and "fetch(" not in text, path


def test_figures_are_files_of_their_own(run, page):
    names = {path.stem for path in page.glob("figures/*.svg")}
    assert {"answer-levels", "loss-encoder", "loss-decoder", "terms-uniform", "sampling", "sigma", "cost"} <= names
    for path in page.glob("figures/*.svg"):
        root = ElementTree.fromstring(path.read_text())
        assert root.find("{http://www.w3.org/2000/svg}desc").text
        assert "var(" not in path.read_text()


def test_every_table_has_four_forms(page):
    stems = {path.stem for path in page.glob("tables/*.csv")}
    assert {"results-pydocs-dev", "stages-pydocs-dev", "zero-shot", "cost", "claims", "collections"} <= stems
    for stem in stems:
        assert {path.suffix for path in page.glob(f"tables/{stem}.*")} == {".csv", ".md", ".tex", ".html"}
        frame = pd.read_csv(page / "tables" / f"{stem}.csv")
        assert not frame.empty


def test_odd_names_are_escaped(tmp_path):
    values = synthetic_run.config()
    values["report"]["title"] = "<script>alert('x')</script> & co"
    values["systems"] = {'a<b>&"c"': values["systems"]["bm25"]}
    terms = synthetic_run.masked_terms()
    terms["example"]["words"][0] = "<b>hokey</b>"
    terms["uniform"]["top"][0][0] = "</svg>"
    run = made(tmp_path / "run", systems=values["systems"], report=values["report"], targets=FEW)
    object.__setattr__(run, "masked_terms", {"cdmae": terms})
    write(run, tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text()
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; co" in text
    assert "<b>hokey" not in text and "a<b>" not in text
    assert "<script>alert" not in "".join(path.read_text() for path in (tmp_path / "report").rglob("*.svg"))
    assert text.count("<svg") == text.count("</svg>")
    assert text.count("<script") == 1


@pytest.mark.parametrize("parts", [(), ("trained",), ("masked_terms",), ("benchmarks",)])
def test_missing_parts_leave_a_clean_page(tmp_path, parts):
    write(made(tmp_path / "run", targets=FEW, parts=parts), tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text()
    assert not re.search(r"\bnan\b|\bNone\b", re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S))
    for section, part in (("training", "trained"), ("masking", "masked_terms"), ("cost", "benchmarks")):
        assert (f'<section id="{section}"' in text) == (part in parts)
        assert (f'href="#{section}"' in text) == (part in parts)


def test_bm25_alone_says_that_it_cannot_tell(tmp_path):
    values = synthetic_run.config()
    evaluation = values["evaluation"] | {"baseline": ""}
    systems = {"bm25": values["systems"]["bm25"]}
    run = made(tmp_path / "run", systems=systems, encoders={}, stages={}, evaluation=evaluation, targets=FEW, parts=())
    write(run, tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text()
    assert "This run cannot tell." in text
    assert "nan" not in re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    assert (tmp_path / "report" / "tables" / "results-pydocs-dev.csv").exists()


def test_zero_shot_alone_is_a_page(tmp_path):
    run = made(tmp_path / "run", targets={"networkx": {"test": 30}}, parts=())
    write(run, tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text()
    assert '<section id="zero-shot"' in text and '<section id="results"' not in text
    assert "underlined" in text


def test_nothing_at_all_is_still_a_page(tmp_path):
    write(facts.Facts(config={}), tmp_path / "report")
    assert "This run cannot tell." in (tmp_path / "report" / "index.html").read_text()


def test_a_small_run_is_called_one(tmp_path, run):
    assert not answer.is_small(run, 150)
    small = made(tmp_path / "run", targets={"pydocs": {"dev": 20, "test": 10}}, parts=())
    write(small, tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text()
    assert "mean nothing" in text and "Too small a run to tell." in text


def test_measures_of_different_queries_are_refused(run):
    values = dict(run.values)
    key = ("mae-stage1", DEV, "RR@10")
    values[key] = values[key].rename(lambda name: f"other-{name}")
    with pytest.raises(InputError, match="different queries"):
        facts.Facts(run.config, values).difference("bm25", "mae-stage1", DEV, "RR@10")


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_and_lines_have_contrast(scheme):
    def luminance(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(first, second):
        high, low = sorted((luminance(first), luminance(second)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    colours = {name: pair[scheme] for name, pair in palette.COLOURS.items()}
    for ground in ("paper", "raised"):
        for name in ("ink", "soft", "link", *(f"s{index}" for index in range(palette.SERIES))):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["warning"], colours["warning-paper"]) >= 4.5
    assert contrast(colours["strong-rule"], colours["paper"]) >= 3
