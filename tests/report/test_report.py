import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import synthetic_run
from synthetic_run import SMALL, rows_of

from cdmae import formats
from cdmae.errors import InputError
from cdmae.evaluation import significance
from cdmae.evaluation.significance import Difference, paired
from cdmae.report import charts, facts
from cdmae.report.columns import Column, together, whole, zero_shot
from cdmae.report.facts import Target
from cdmae.report.glossary import TERMS
from cdmae.report.page import write
from cdmae.report.paper import exhibits
from cdmae.report.sections import (
    SERIES,
    answer,
    changes,
    combined,
    comparison_table,
    masking,
    results,
    setting,
    training,
)
from cdmae.report.templates import COLOURS, FOLDER

ROOT = Path(__file__).resolve().parents[2]
DEV = Target("pydocs", "dev")
FEW = {"pydocs": {"dev": 30}}


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


def measured(folder, *, parts=(), targets=FEW, **changes):
    """The facts of a run with changed sections of the config."""
    return facts.read(
        synthetic_run.make(folder, synthetic_run.config() | changes, targets=targets, parts=parts)
    )


def some_systems(*names):
    return {name: synthetic_run.config()["systems"][name] for name in names}


def page_of(run, folder):
    """The text of the page on a run, its white space as a browser shows it."""
    write(run, folder)
    return re.sub(r"[ \n]+", " ", (folder / "index.html").read_text())


# --- numbers --------------------------------------------------------------------------------------


def test_tables_hold_the_means_of_the_measures_the_best_bold_and_the_second_underlined(run):
    table = results.measures_table(Column.of(run, DEV))
    rows = rows_of(table)
    assert list(rows) == run.systems
    assert re.fullmatch(r"against mae-stage1: \+[\d.]+, p < .001", rows["bm25"]["MRR@10, note"])
    for measure, head in zip(synthetic_run.MEASURES, table.columns[2:-1], strict=True):
        means = [100 * run.values[name, DEV, measure].to_numpy().mean() for name in run.systems]
        assert [float(row[head]) for row in rows.values()] == pytest.approx(means, rel=1e-5)
    values = {name: round(100 * run.value(name, DEV, "RR@10"), 1) for name in run.systems}
    first, second, *_ = sorted(values, key=values.get, reverse=True)
    shown = {row[0]: row[2] for row in table.rows}
    assert [name for name in run.systems if shown[name].best] == [first]
    assert [name for name in run.systems if shown[name].second] == [second]
    assert f"<b>{values[first]}</b>" in table.html() and f"<u>{values[second]}</u>" in table.html()
    assert f"**{values[first]}**" in table.markdown()
    assert rf"\textbf{{{values[first]}}}" in table.tex()


def test_a_target_has_the_measures_of_its_own_lowest_relevant_grade(tmp_path):
    """And no gaps for those of others; what a system is at stands in the first of them."""
    test, evaluation = Target("pydocs", "test"), synthetic_run.config()["evaluation"]
    targets = {"pydocs": {"dev": 20, "test": 10}}
    run = measured(
        tmp_path / "run",
        evaluation={**evaluation, "relevant": {"pydocs": {"test": 2}}},
        targets=targets,
    )
    heads = ["MRR(rel=2)@10", "R(rel=2)@50", "R(rel=2)@1000", "nDCG@10"]
    assert results.measures_table(Column.of(run, test)).columns[2:-1] == heads
    assert results.measures_table(Column.of(run, DEV)).columns[2:-1] == [
        "MRR@10",
        "R@50",
        "R@1000",
        "nDCG@10",
    ]
    assert run.main_measure(test) == "RR(rel=2)@10"
    assert changes.stage_table(Column.of(run, test)).columns[2:5] == heads[:3]
    write(run, tmp_path / "report")


def gap_of(run, a, b, target=DEV, measure="RR@10"):
    """The uncorrected difference of two systems, from the values of their queries."""
    first, second = (run.values[name, target, measure].to_numpy() for name in (a, b))
    return paired(first, second)


def test_marks_stand_where_the_corrected_test_is_significant_hollow_with_one_training(run):
    gaps = {name: gap_of(run, name, run.baseline) for name in run.systems if name != run.baseline}
    corrected = dict(zip(gaps, significance.corrected([*gaps.values()]), strict=True))
    signs = {"better": "△", "worse": "▽", "open": ""}
    expected = {name: signs[gap.verdict] for name, gap in corrected.items()}
    assert set(expected.values()) >= {"△", ""}
    found = {name: cell.mark for name, cell in results.system_cells(Column.of(run, DEV)).items()}
    assert found == {name: expected.get(name, "") for name in run.systems}


def test_the_table_of_a_target_lists_the_systems_that_each_significantly_exceeds(run):
    rows = rows_of(results.measures_table(Column.of(run, DEV)))
    pairs = list(itertools.combinations(run.systems, 2))
    corrected = significance.corrected([gap_of(run, *pair) for pair in pairs])
    expected = {name: set() for name in run.systems}
    for (a, b), gap in zip(pairs, corrected, strict=True):
        if gap.p < 0.05:
            better, worse = (a, b) if gap.difference > 0 else (b, a)
            expected[better].add(worse)
    number = {row["#"]: name for name, row in rows.items()}
    found = {name: {number[at] for at in row["exceeds"].split()} for name, row in rows.items()}
    assert found == expected and expected["bm25"] and not expected["none-stage1"]


def test_the_overview_has_every_system_and_bm25_does_not_flatten_the_figure(run):
    table = results.section(run).tables[0]
    networkx = Target("networkx", "test")
    shown = [
        ("pydocs dev, MRR@10", DEV, "RR@10"),
        ("pydocs test, MRR@10", Target("pydocs", "test"), "RR@10"),
        ("scikit-learn, zero-shot, MRR@10", Target("scikit-learn", "test"), "RR@10"),
        ("networkx, zero-shot, MRR@10", networkx, "RR@10"),
        ("scikit-learn, zero-shot, nDCG@10", Target("scikit-learn", "test"), "nDCG@10"),
        ("networkx, zero-shot, nDCG@10", networkx, "nDCG@10"),
    ]
    assert table.columns == ["system", *(head for head, *_ in shown)]
    for head, target, measure in shown:
        for name, row in rows_of(table).items():
            assert float(row[head]) == pytest.approx(
                100 * run.value(name, target, measure), rel=1e-4
            )
    figure = results.against_baseline(Column.of(run, DEV))
    shown = [part.rpartition(" ")[0] for part in figure.description.rpartition(": ")[2].split(", ")]
    assert shown == [
        "none-stage1",
        "cdmae-stage1",
        "cdmae-stage2",
        "cdmae-reranker",
        "cdmae-stage3",
    ]


def test_stage_table_shows_what_each_stage_added(run):
    rows = rows_of(changes.stage_table(Column.of(run, DEV)))
    gain = run.value("cdmae-stage2", DEV, "RR@10") - run.value("cdmae-stage1", DEV, "RR@10")
    assert list(rows) == ["cdmae-stage1", "cdmae-stage2", "cdmae-stage3"]
    row = rows["cdmae-stage2"]
    assert row["after"] == "cdmae-stage1" and float(row["added"]) == pytest.approx(
        100 * gain, rel=1e-4
    )
    low, high = map(float, row["interval, Holm"].split(" to "))
    assert low < 100 * gain < high


def test_many_zero_shot_collections_stand_in_rows_and_forums_are_one(tmp_path):
    names = [f"set-{index}" for index in range(9)] + ["cqadupstack-tex", "cqadupstack-unix"]
    targets = FEW | {name: {"test": 20 + index} for index, name in enumerate(names)}
    run = measured(
        tmp_path, systems=some_systems("bm25", "mae-stage1", "cdmae-stage1"), targets=targets
    )
    first, table, *others = results.zero_shot(run).tables
    assert [first.name, table.name] == ["zero-shot-mrr-10", "zero-shot-ndcg-10"]
    assert [other.name for other in others] == ["zero-shot-r-50", "zero-shot-r-1000"]
    recall = rows_of(others[0])[names[0]]["bm25"]
    of_first = run.value("bm25", Target(names[0], "test"), "R@50")
    assert float(recall) == pytest.approx(100 * of_first, rel=1e-4)
    of_bm25 = {name: row["bm25"] for name, row in rows_of(table).items()}
    assert list(of_bm25) == [*names[:9], "cqadupstack", "average"]
    both = [run.value("bm25", Target(name, "test"), "nDCG@10") for name in names[9:]]
    assert float(of_bm25["cqadupstack"]) == pytest.approx(50 * sum(both), rel=1e-4)
    mean = sum(map(float, list(of_bm25.values())[:-1])) / 10
    assert float(of_bm25["average"]) == pytest.approx(mean, rel=1e-4)
    overview = rows_of(results.section(run).tables[0])["bm25"]
    assert float(overview["mean of 10 collections, zero-shot, nDCG@10"]) == pytest.approx(
        mean, rel=1e-4
    )


def test_a_mean_difference_counts_every_collection_once(tmp_path):
    names = ("a", "cqadupstack-tex", "cqadupstack-unix")
    targets = FEW | {name: {"test": 20} for name in names}
    run = measured(tmp_path, systems=some_systems("bm25", "mae-stage1"), targets=targets)
    a, tex, unix = (
        gap_of(run, "bm25", "mae-stage1", Target(name, "test"), "nDCG@10") for name in names
    )
    mean = together(zero_shot(run), "mean")
    expected = (a.difference + (tex.difference + unix.difference) / 2) / 2
    assert mean.difference("bm25", "mae-stage1").difference == pytest.approx(expected)
    assert mean.difference("bm25", "nothing") is None


def test_the_first_screen_states_difference_sureness_and_cost(run, page):
    gap = whole(run).alone("cdmae-stage1", "mae-stage1")
    text = re.sub(r"<[^>]+>", "", (page / "index.html").read_text().split('id="setting"')[0])
    assert f"{100 * gap.difference:+.1f} points" in text.replace("\N{MINUS SIGN}", "-")
    assert f"{gap.queries} queries" in text and "seed 42" in text
    assert "4.5\N{NO-BREAK SPACE}s" in text  # 3.1 s of counting and 1.4 s of scoring


SENTENCES = {
    ("better", 3): ("Yes, by <b>2.0 points</b>", "undo the gain", "It improves the run that it"),
    ("worse", 3): ("No: it lost <b>2.0 points</b>", "undo the loss", "so use cdmae-stage2 without"),
    ("open", 3): ("No difference found: <b>", "No difference was found.", ""),
    ("better", 1): (
        "With one training each, it gained <b>2.0",
        "Several seeds decide it",
        "another",
    ),
}


@pytest.mark.parametrize(("verdict", "seeds"), SENTENCES)
def test_the_first_screen_advises_only_what_its_numbers_show(run, monkeypatch, verdict, seeds):
    sign = -1 if verdict == "worse" else 1
    error = 0.02 if verdict == "open" else 0.002
    gap = Difference(0.1, 0.1 - sign * 0.02, sign * 0.02, error, 149, queries=150, seeds=seeds)
    assert gap.verdict == verdict
    for name in ("alone", "difference"):
        monkeypatch.setattr(Column, name, lambda self, a, b: gap if a and b else None)
    text = re.sub(r"\s+", " ", str(answer.section(run).text)).replace("\N{MINUS SIGN}", "-")
    own = SENTENCES[verdict, seeds]
    assert all(sentence in text for sentence in own)
    others = {sentence for some in SENTENCES.values() for sentence in some[:2]} - set(own)
    assert not [sentence for sentence in others if sentence in text]


def test_a_comparison_has_one_p_wherever_it_is_shown_corrected_for_all_with_its_reference(run):
    column = Column.of(run, DEV)
    others = [name for name in run.systems if name != "mae-stage1"]
    raw = [gap_of(run, name, "mae-stage1").p for name in others]
    expected = dict(zip(others, significance.holm(raw), strict=True))["cdmae-stage1"]
    first = answer.section(run).tables[0]
    assert float(rows_of(first)["pydocs dev, MRR@10"]["p, Holm"]) == pytest.approx(
        expected, rel=1e-4
    )
    gaps = (
        column.compared(["cdmae-stage1"], "mae-stage1")["cdmae-stage1"],
        column.compared(run.systems, "mae-stage1")["cdmae-stage1"],
        column.difference("mae-stage1", "cdmae-stage1"),  # as "Changes" shows it
    )
    assert [gap.p for gap in gaps] == pytest.approx(3 * [expected])
    assert len({round(gap.high - gap.low, 9) for gap in gaps}) == 1
    assert formats.probability(expected) in results.system_cells(column)["cdmae-stage1"].note


def test_a_fusion_is_compared_with_bm25_a_reranker_with_its_run_and_weights_are_shown(run):
    about = {"method": "convex", "systems": ["bm25", "cdmae-stage3"], "weights": [0.8, 0.2]}
    about |= {"on": ["pydocs", "dev"], "measure": "RR@10"}
    shown, compared, reranked = combined.section(replace(run, fusions={"fused": about})).tables
    assert shown.rows == [
        ["fused", "0.8 × bm25, 0.2 × cdmae-stage3", "convex", "MRR@10 on pydocs dev"]
    ]
    assert reranked.columns[1:3] == ["cdmae-reranker", "cdmae-stage2"]
    gap = gap_of(run, "fused", "bm25")
    row = rows_of(compared)["pydocs dev, MRR@10"]
    assert float(row["difference"]) == pytest.approx(100 * gap.difference, rel=1e-4)
    assert float(row["bm25"]) == pytest.approx(100 * gap.b, rel=1e-4)


def test_cost_adds_up_and_masked_terms_are_shown(run):
    rows = rows_of(setting.cost(run).tables[0])
    assert float(rows["pre-training"]["time"]) == pytest.approx(190 + 190 + 3.2)
    assert float(rows["all"]["jobs"]) == len(run.benchmarks)
    assert rows["measures"]["peak memory"] == "\N{EN DASH}"  # too short for Snakemake to sample
    masked = run.masked_terms["cdmae"]
    assert [*rows_of(masking.terms_table(masked))["1"].values()] == [
        "1",
        "the",
        "0.061",
        "array",
        "0.012",
    ]
    sweep, _ = masking.sigma_sweep(masked)
    assert [row[0].text for row in sweep.rows] == ["0", "1", "2", "4", "\N{INFINITY}"]


def test_curves_are_averaged_and_a_steep_beginning_does_not_flatten_them(run):
    steps, values = training.curve(run.encoders["mae"], "decoder_loss")
    assert len(steps) == training.POINTS == len(values)
    whole = run.encoders["mae"].curve["decoder_loss"]
    assert sum(values) / len(values) == pytest.approx(whole.mean(), rel=1e-6)
    steep = charts.Series("a", list(range(100)), [90.0, 50.0, 9.0] + [4.0] * 97)
    (figure,) = training.loss_figures("loss", "Loss", [steep])
    assert figure.description == "Loss: a from 4 to 4" and ">90<" not in figure.drawing
    gentle = charts.Series("a", list(range(100)), [7.9] + [4.0] * 99)
    (figure,) = training.loss_figures("loss", "Loss", [gentle])
    assert figure.description == "Loss: a from 7.9 to 4"
    assert training.loss_figures("loss", "Loss", []) == []


def test_the_papers_tables_stand_in_the_report_where_its_collections_were_measured(tmp_path):
    values = synthetic_run.config()
    on_msmarco = {
        section: {
            name: {**entry, "collection": "msmarco"} for name, entry in values[section].items()
        }
        for section in ("encoders", "stages")
    }
    collections = {"msmarco": {"source": "msmarco"}, "scifact": {"source": "beir"}}
    targets = {"msmarco": {"dev": 40}, "scifact": {"test": 30}}
    section = exhibits.section(
        measured(tmp_path, collections=collections, targets=targets, **on_msmarco)
    )
    assert [table.name for table in section.tables] == [
        "claims",
        "table_main",
        "table_stages",
        "table_beir",
    ]
    assert "only the signs of the differences" not in str(section.text)


@pytest.mark.parametrize("judgments", [1, 3])
def test_a_share_of_judged_passages_is_not_recall_in_disguise(run, judgments):
    """With one judgment per query, Judged@10 is R@10 / 10, and is left out."""
    measures = [*run.config["evaluation"]["measures"], "Judged@10"]
    config = run.config | {"evaluation": run.config["evaluation"] | {"measures": measures}}
    first, second = run.systems[:2]
    frame = run.values[first, DEV, "RR@10"]
    judged = {
        (first, DEV, "Judged@10"): frame * 0 + 1.0,
        (second, DEV, "Judged@10"): frame * 0 + 0.4,
    }
    pydocs = run.collections["pydocs"]
    pydocs = replace(pydocs, judgments={"dev": judgments * pydocs.judged["dev"]})
    collections = run.collections | {"pydocs": pydocs}
    changed = replace(run, config=config, values=run.values | judged, collections=collections)
    text = " ".join(str(answer.limits(changed).text).split())
    several = judgments > 1
    assert ("Judged@10" in results.measures_table(Column.of(changed, DEV)).columns) == several
    shares = f"40.0 % are judged for {second} and 100.0 % for {first} (Judged@10)"
    assert (shares in text) == several
    assert ("Queries of pydocs dev" in text) != several
    assert "Judged@" not in str(answer.limits(run).text)


def test_only_stages_that_begin_with_the_encoder_are_said_to(run):
    words = "Every stage starts again from the pre-trained encoder."
    assert words in str(changes.stages(run).text)
    systems = run.config["systems"]
    after = {**systems["cdmae-stage2"], "after": "cdmae-stage1"}
    rounds = replace(run, config=run.config | {"systems": {**systems, "cdmae-stage2": after}})
    text = " ".join(str(changes.stages(rounds).text).split())
    assert words not in text and "cdmae-stage2 continues from the weights" in text


def test_a_mean_of_the_first_seed_says_so_where_the_column_has_means_over_seeds(tmp_path):
    values = synthetic_run.config() | {"seed": [42, 43]}
    run = facts.read(synthetic_run.make(tmp_path, values, targets=SMALL, parts=()))
    once = {
        key: frame.iloc[:, :1] if key[0] == "cdmae-stage2" else frame
        for key, frame in run.values.items()
    }
    column = Column.of(replace(run, values=once), DEV)
    html = comparison_table("x", "cdmae-stage2", "cdmae-stage1", [column]).html()
    assert html.count("(seed 42)") == 1


# --- the page -------------------------------------------------------------------------------------


def test_the_page_tells_machine_versions_and_config_and_loads_nothing(page):
    text = (page / "index.html").read_text()
    assert "Machine: Linux x86_64, Xeon, 2 cores, 16 GB, no GPU." in re.sub(r"\s+", " ", text)
    assert "pydocs: python 3.12.4, numpy 2.4.6" in text
    assert "\n    decoder_masking: importance\n" in text
    for path in [page / "index.html", *page.glob("tables/*.html"), *page.glob("figures/*.svg")]:
        text = path.read_text()
        links = re.findall(r"""(?:src|href|action|poster|data)\s*=\s*["']([^"']*)""", text)
        # relative links lead to files of the run; nothing is loaded from them
        assert all(re.match(r"#|data:|\.\./|tables/|figures/", link) for link in links), path
        assert not re.search(r"""<(?:link|script|img|iframe)\b[^>]*(?:src|href)="(?!data:)""", text)
        assert "@import" not in text and "url(" not in text and "fetch(" not in text, path


def test_the_footer_names_commit_command_and_files(run, tmp_path):
    words = ["./run", "--configfile", "/home/alice/acme.yaml", "--config", "results=/home/alice/r"]
    origin = {"commit": "4628af9", "changed": True, "command": words}
    text = page_of(replace(run, origin=origin), tmp_path / "report")
    footer = text[text.index("<footer>") :]
    assert "<code>4628af9</code>, with uncommitted changes" in footer
    assert "<code>./run --configfile acme.yaml --config results=r</code>" in footer
    assert "alice" not in text
    for link in ("../models/cdmae-stage1/README.md", "../runs/fused/", "../logs/"):
        assert f'href="{link}"' in footer
    assert 'href="../models/bm25/' not in footer
    for words in TERMS.values():
        assert words in footer


OF_STAGE = {"queries": 8, "group": 4, "epochs": 1.0, "depth": 50}
NEGATIVES = "one: 8 queries × 4, 1 epoch, negatives of bm25 (best 50"


@pytest.mark.parametrize(
    ("stage", "words"),
    [(OF_STAGE, f"{NEGATIVES})"), (OF_STAGE | {"margin": 0.05}, f"{NEGATIVES}, margin 0.05)")],
)
def test_a_cell_describes_a_training(stage, words):
    """As plain text: a table escapes it, and its CSV does not."""
    entry = {"stage": "one", "negatives": "bm25"}
    assert setting.in_words("recipe", entry=entry, stage=stage) == words


@pytest.mark.parametrize("rule", ["report", "table"])  # figure is as table
def test_a_changed_template_is_a_changed_input(rule):
    """The fingerprint of the code follows imports alone."""
    rules = (ROOT / "workflow/rules/report.smk").read_text()
    assert "templates=templates" in rules.split(f"rule {rule}:")[1].split("output:")[0]
    assert {path.suffix for path in FOLDER.iterdir()} == {".j2"}


def test_equal_facts_give_equal_bytes(run, page, tmp_path):
    write(run, tmp_path / "again")
    folders = (page, tmp_path / "again")
    first, second = (
        {path.relative_to(at): path.read_bytes() for path in at.rglob("*.*")} for at in folders
    )
    assert first == second and len(first) > 80


def test_figures_and_tables_are_files_of_their_own(page):
    figures, tables = (
        {path.stem: path for path in page.glob(name)} for name in ("figures/*.svg", "tables/*.csv")
    )
    shown = {
        "answer-levels",
        "loss-encoder",
        "loss-decoder",
        "terms-uniform",
        "sampling",
        "sigma",
        "cost",
    }
    assert shown <= set(figures)
    for path in figures.values():
        assert (
            ElementTree.fromstring(path.read_text()).find("{http://www.w3.org/2000/svg}desc").text
        )
        assert "var(" not in path.read_text()
    assert {
        "results-pydocs-dev",
        "stages-pydocs-dev",
        "zero-shot-ndcg-10",
        "cost",
        "claims",
        "collections",
    } <= set(tables)
    for name, path in tables.items():
        assert {other.suffix for other in page.glob(f"tables/{name}.*")} == {
            ".csv",
            ".md",
            ".tex",
            ".html",
        }
        assert not pd.read_csv(path).empty


def test_odd_names_are_escaped(tmp_path):
    values = synthetic_run.config()
    systems = {'a<b>&"c"': values["systems"]["bm25"]}
    run = measured(
        tmp_path / "run", systems=systems, report={"title": "<script>alert('x')</script> & co"}
    )
    terms = synthetic_run.masked_terms()
    terms["example"]["words"][0] = "<b>hokey</b>"
    terms["uniform"]["top"][0][0] = "</svg>"
    text = page_of(replace(run, masked_terms={"cdmae": terms}), tmp_path / "report")
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; co" in text
    assert "<b>hokey" not in text and "a<b>" not in text
    assert "<script>alert" not in "".join(
        path.read_text() for path in (tmp_path / "report").rglob("*.svg")
    )
    assert text.count("<svg") == text.count("</svg>")
    assert text.count("<script") == 1


@pytest.mark.parametrize("parts", [(), ("trained",), ("masked_terms",), ("benchmarks",)])
def test_missing_parts_leave_a_clean_page(tmp_path, parts):
    text = page_of(measured(tmp_path / "run", parts=parts), tmp_path / "report")
    assert not re.search(
        r"\bnan\b|\bNone\b", re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text)
    )
    for section, part in (
        ("training", "trained"),
        ("masking", "masked_terms"),
        ("cost", "benchmarks"),
    ):
        assert (f'<section id="{section}"' in text) == (part in parts)
        assert (f'href="#{section}"' in text) == (part in parts)


def test_bm25_alone_says_that_it_cannot_tell(tmp_path):
    evaluation = synthetic_run.config()["evaluation"] | {"baseline": ""}
    run = measured(
        tmp_path / "run",
        systems=some_systems("bm25"),
        encoders={},
        stages={},
        evaluation=evaluation,
    )
    text = page_of(run, tmp_path / "report")
    assert (
        "This run cannot tell" in text
        and "It is the only system." in text
        and ">bm25: MRR@10 <b>" in text
    )
    assert "nan" not in re.sub(r"<style>.*?</style>", "", text)
    assert (tmp_path / "report" / "tables" / "results-pydocs-dev.csv").exists()


def test_without_two_maskings_the_page_names_the_best_system_and_how_far_it_is_from_bm25(tmp_path):
    run = measured(tmp_path / "run", systems=some_systems("bm25", "mae-stage1"))
    worse, better = sorted(run.systems, key=lambda name: run.value(name, DEV, "RR@10"))
    cases = (
        (better, worse, "may help the other systems."),
        (worse, better, f"points compared with {worse} ("),
    )
    for bm25, other, sentence in cases:
        systems = {
            bm25: some_systems("bm25")["bm25"],
            other: some_systems("mae-stage1")["mae-stage1"] | {"negatives": bm25},
        }
        text = page_of(replace(run, config=run.config | {"systems": systems}), tmp_path / bm25)
        assert f">{better}: MRR@10 <b>" in text and sentence in text


def test_zero_shot_alone_and_nothing_at_all_are_pages_and_a_small_run_is_called_one(tmp_path, run):
    text = page_of(
        measured(tmp_path / "run", targets={"networkx": {"test": 30}}), tmp_path / "report"
    )
    assert '<section id="zero-shot"' in text and '<section id="results"' not in text
    assert "underlined" in text
    assert "This run cannot tell" in page_of(facts.Facts(config={}), tmp_path / "nothing")
    text = page_of(
        measured(tmp_path / "small", targets={"pydocs": {"dev": 20, "test": 10}}), tmp_path / "page"
    )
    assert "only large differences can be significant" in text


def test_measures_of_different_queries_are_refused(run):
    key = ("mae-stage1", DEV, "RR@10")
    values = run.values | {key: run.values[key].rename(index="other-{}".format)}
    with pytest.raises(InputError, match="different queries"):
        facts.Facts(run.config, values).pair("bm25", "mae-stage1", DEV, "RR@10")


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_and_lines_have_contrast(scheme):
    def luminance(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(first, second):
        high, low = sorted((luminance(first), luminance(second)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    colours = {name: pair[scheme] for name, pair in COLOURS.items()}
    for ground in ("paper", "raised"):
        for name in ("ink", "soft", "link", *(f"s{index}" for index in range(SERIES))):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["warning"], colours["warning-paper"]) >= 4.5
    assert contrast(colours["strong-rule"], colours["paper"]) >= 3


def test_no_file_of_a_report_shows_a_local_path(run, tmp_path):
    """Reports are published: data, checkpoints and retrievers are shown by their last parts."""
    home = "/home/alice/clients/acme"
    config = run.config | {
        "results": f"{home}/results",
        "collections": dict.fromkeys(run.config["collections"], {"path": f"{home}/data"}),
        "starts": {name: {"checkpoint": f"{home}/model"} for name in run.config["starts"]},
    }
    retriever = {"kind": "external", "model": f"{home}/retriever"}
    config["systems"] = run.config["systems"] | {"bm25": retriever}
    write(replace(run, config=config), tmp_path / "report")
    files = [path for path in (tmp_path / "report").rglob("*") if path.is_file()]
    assert not [path.name for path in files if b"alice" in path.read_bytes()]
    page = (tmp_path / "report/index.html").read_text()
    words = ("path: data", "checkpoint: model", "results: results")
    for shown in (*words, "published retriever retriever"):
        assert shown in page
