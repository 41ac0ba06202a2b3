"""The page as a whole: what it shows of a run, what it leaves out, and that it loads nothing."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import synthetic_run
from planned import plan
from synthetic_run import SMALL, mean, plain, tables_of

from cdmae import circumstances, formats
from cdmae.collections.store import Collection, write_collection
from cdmae.files import read_json, write_json
from cdmae.report import columns, facts, figures, frames, tables
from cdmae.report.facts import Target
from cdmae.report.page import write
from cdmae.report.records import benchmarks
from cdmae.report.sections import queries
from cdmae.runs import Run, write_run

DEV = Target("pydocs", "dev")
FEW = {"pydocs": {"dev": 30}}
HOSTILE = "<script>alert(7)</script>\x1b[2J\x00 $x$ {{ 7 * 7 }}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The facts of a whole run with few queries."""
    return facts.read(synthetic_run.make(tmp_path_factory.mktemp("run"), targets=SMALL))


def page_of(run, folder):
    """The page on a run."""
    write(run, folder)
    return (folder / "index.html").read_text()


def sections_of(page):
    return re.findall(r'<section id="(\w+)"', page)


def measured(folder, *, parts=(), targets=FEW, **changes):
    """The facts of a run with changed sections of the config."""
    values = synthetic_run.config() | changes
    return facts.read(synthetic_run.make(folder, values, targets=targets, parts=parts))


def some_systems(*names):
    return {name: synthetic_run.config()["systems"][name] for name in names}


def test_the_page_shows_machine_versions_config_and_origin_and_loads_nothing(run, tmp_path):
    words = ["./run", "--configfile", "/home/alice/acme.yaml", "--config", "results=/home/alice/r"]
    origin = {"commit": "4628af9", "changed": True, "command": words}
    known = run.given | {"origin": origin, "wall": 555.0}
    page = page_of(replace(run, given=known), tmp_path / "report")
    text = plain(page)
    assert "Linux x86_64, Xeon, 2 cores, 16 GB, no GPU" in text
    assert "pydocs, python 3.12.4, numpy 2.4.6" in text
    assert "decoder_masking: importance" in text
    assert "4628af9, with uncommitted changes" in text
    assert "./run --configfile acme.yaml --config results=r" in text and "alice" not in page
    assert "9 min 15 s from the start" in text
    assert 'href="../models/cdmae-stage1/README.md"' in page
    assert 'href="../models/bm25/' not in page
    links = re.findall(r"""(?:src|href|action|poster|data)\s*=\s*["']([^"']*)""", page)
    # relative links lead to files of the run; nothing is loaded from them
    assert all(re.match(r"#|data:|\.\./|[a-z]+\.(csv|md|tex)$", link) for link in links)
    assert not re.search(r"""<(?:link|script|img|iframe)\b[^>]*(?:src|href)="(?!data:)""", page)
    assert not re.search(r"@import|url\((?!#)|fetch\(", page)


@pytest.mark.parametrize(
    ("names", "parts", "sections"),
    [
        (["bm25"], [], "use measures setup"),
        (["bm25", "mae-stage1"], [], "use differences measures setup"),
        (
            ["bm25", "mae-stage1", "cdmae-stage1"],
            ["trained"],
            "use differences measures method training",
        ),
        (["bm25", "none-stage1"], ["benchmarks"], "use differences measures setup"),
    ],
)
def test_missing_parts_leave_a_clean_page(tmp_path, names, parts, sections):
    run = measured(tmp_path / "run", parts=parts, systems=some_systems(*names))
    page = page_of(run, tmp_path / "report")
    found = sections_of(page)
    assert found[: len(sections.split())] == sections.split() and found[-1] == "setup"
    assert not re.search(r"\b(nan|None|undefined)\b", plain(page))


def test_a_run_without_measures_has_only_its_set_up(tmp_path):
    page = page_of(facts.Facts({"systems": {}, "report": {"title": "T"}}), tmp_path / "report")
    assert sections_of(page) == ["setup"] and "<h1>T</h1>" in page


def test_a_config_without_masks_or_rows_of_the_paper_asks_nothing_about_them(tmp_path):
    """As `./run new` writes them."""
    systems = some_systems("bm25", "cdmae-stage1")
    report = {"title": "mine", "compare": {"cdmae-stage1": ["bm25"]}}
    run = measured(tmp_path / "run", parts=("trained",), systems=systems, report=report)
    page = page_of(run, tmp_path / "report")
    assert "Did masking" not in page and "Claims of the paper" not in page
    assert "What made a difference?" in page


def test_no_text_of_a_run_is_read_as_markup(tmp_path):
    values = synthetic_run.config()
    values["report"]["title"] = HOSTILE
    name = "a<b>&$c$_{d}"
    values["systems"] = some_systems("bm25", "mae-stage1", "cdmae-stage1")
    values["systems"][name] = values["systems"].pop("cdmae-stage1")
    values["report"]["compare"] = {name: ["mae-stage1"]}
    path = synthetic_run.make(tmp_path / "run", values, targets=FEW, parts=("masked_terms",))
    terms = synthetic_run.masked_terms()
    terms["importance"]["top"][0][0] = HOSTILE
    terms["example"]["words"][0] = HOSTILE
    write_json(tmp_path / "run/masked_terms/cdmae.json", terms)
    page = page_of(facts.read(path), tmp_path / "report")
    assert "<script>alert" not in page and "a<b>" not in page and "49" not in page.split("</h1>")[0]
    assert "a&lt;b&gt;&amp;$c$_{d}" in page
    tex = (tmp_path / "report/results.tex").read_text()
    assert r"a$<$b$>$\&\$c\$\_\{d\}" in tex
    line = (tmp_path / "report/results.md").read_text().splitlines()
    assert any(each.startswith(r"| a\<b\>\&$c$") for each in line)


def test_a_target_has_the_measures_of_its_own_lowest_relevant_grade(tmp_path):
    evaluation = synthetic_run.config()["evaluation"] | {"relevant": {"pydocs": {"test": 2}}}
    targets = {"pydocs": {"dev": 20, "test": 10}}
    run = measured(tmp_path / "run", evaluation=evaluation, targets=targets)
    assert run.main_measure(Target("pydocs", "test")) == "RR(rel=2)@10"
    found = tables_of(page_of(run, tmp_path / "report"))
    assert list(found["MRR(rel=2)@10"].columns) == ["system", "pydocs test"]
    assert list(found["MRR@10"].columns) == ["system", "pydocs dev"]


def test_many_zero_shot_collections_become_rows_and_forums_are_one(tmp_path):
    names = [f"set-{index}" for index in range(9)] + ["cqadupstack-tex", "cqadupstack-unix"]
    targets = FEW | {name: {"test": 20 + index} for index, name in enumerate(names)}
    systems = some_systems("bm25", "mae-stage1", "cdmae-stage1")
    run = measured(tmp_path / "run", systems=systems, targets=targets)
    found = tables_of(page_of(run, tmp_path / "report"))
    table = found["nDCG@10, by collection"].set_index("queries")["bm25"]
    assert list(table.index) == ["pydocs dev", *names[:9], "cqadupstack", "zero-shot average"]
    values = {name: mean(run, "bm25", Target(name, "test"), "nDCG@10") for name in names}
    forums = (values["cqadupstack-tex"] + values["cqadupstack-unix"]) / 2
    whole = (sum(values[name] for name in names[:9]) + forums) / 10
    assert table["cqadupstack"] == formats.points(forums)
    assert table["zero-shot average"] == formats.points(whole)
    overview = next(iter(found.values()))
    assert "mean of 10 collections" in overview.columns and len(overview.columns) < 9


def test_a_mean_difference_counts_every_collection_once(tmp_path):
    names = ("a", "cqadupstack-tex", "cqadupstack-unix")
    targets = FEW | {name: {"test": 20} for name in names}
    run = measured(tmp_path, systems=some_systems("bm25", "mae-stage1"), targets=targets)
    gaps = []
    for name in names:
        column = columns.of(Target(name, "test"), "nDCG@10")
        gaps.append(columns.difference(run, column, "bm25", "mae-stage1").difference)
    whole = columns.together(columns.zero_shot(run), "mean")
    found = columns.difference(run, whole, "bm25", "mae-stage1")
    assert found.difference == pytest.approx((gaps[0] + (gaps[1] + gaps[2]) / 2) / 2)
    assert columns.difference(run, whole, "bm25", "nothing") is None


def test_the_curve_over_labels_has_a_line_per_encoder_and_a_place_per_number(tmp_path):
    values = synthetic_run.config()
    for number in (100, 1000):
        values["stages"][f"of-{number}"] = dict(values["stages"]["stage1"])
        for encoder in ("mae", "cdmae"):
            like = values["systems"][f"{encoder}-stage1"]
            values["systems"][f"{encoder}-{number}"] = {**like, "stage": f"of-{number}"}
    values["report"]["curve"] = ["of-100", "of-1000"]
    path = synthetic_run.make(tmp_path / "run", values, targets=FEW, parts=("trained",))
    for encoder in ("mae", "cdmae"):
        for number in (100, 1000):
            about = tmp_path / f"run/trained/{encoder}-{number}/about.json"
            write_json(about, read_json(about) | {"queries": number})
    run = facts.read(path)
    page = page_of(run, tmp_path / "report")
    ends = [mean(run, f"mae-{number}", DEV) for number in (100, 1000)]
    said = f"mae from {100 * ends[0]:.3g} to {100 * ends[1]:.3g}"
    assert "MRR@10 by training queries, pydocs dev" in page and said in page


def test_the_sparsity_of_vectors_has_columns_next_to_the_other_costs(run, tmp_path):
    row = {"collection": "pydocs", "megabytes": 3.5, "flops": 1.25, "passage_entries": 90.0}
    known = replace(run, sparsity={"mae-stage1": [row]})
    table = next(iter(tables_of(page_of(known, tmp_path / "report")).values()))
    found = table.set_index("system").loc["mae-stage1", ["entries", "FLOPS", "index, MB"]]
    assert found.tolist() == ["90.0", "1.2", "3.5"]


def test_curves_have_few_points_whose_mean_is_the_curves(run):
    rows = frames.gather(run).trainings
    own = rows[(rows["training"] == "mae") & (rows["quantity"] == "decoder_loss")]
    assert len(own) < 200
    whole = pd.read_csv(f"{run.given['encoders']['mae']}/steps.tsv", sep="\t")["decoder_loss"]
    assert own["value"].mean() == pytest.approx(whole.mean(), rel=1e-6)


# --- queries side by side -------------------------------------------------------------------------


def test_cases_show_the_ranks_and_the_first_passages(tmp_path):
    asked, passages, depth = 30, 60, 20
    path = synthetic_run.make(tmp_path, targets={"pydocs": {"dev": asked}}, parts=())
    relevant = {query: [query, (query * 7 + 1) % passages] for query in range(asked)}
    text = pa.table({
        "passage_id": [f"p{row}" for row in range(passages)], "title": [""] * passages,
        "text": [f"passage number {row}" for row in range(passages)],
    })  # fmt: skip
    pairs = [
        (f"q{query}", f"p{each}", 1) for query, several in relevant.items() for each in several
    ]
    qrels = pd.DataFrame(pairs, columns=["query_id", "passage_id", "grade"])
    ids = [f"q{row}" for row in range(asked)]
    words = pd.DataFrame({"query_id": ids, "text": [f"question {row}" for row in range(asked)]})
    write_collection(
        tmp_path / "docs",
        Collection(
            text, dict.fromkeys(("train", "dev"), words), dict.fromkeys(("train", "dev"), qrels), {}
        ),
    )
    runs = {}
    scores = np.arange(depth, 0, -1, dtype=np.float32)
    for seed, name in enumerate(("bm25", "cdmae-stage1")):
        random = np.random.default_rng(seed)
        ranked = [random.permutation(passages)[:depth].astype(np.int32) for _ in range(asked)]
        if name == "bm25":  # which finds no passage for a query of other words
            ranked[0] = ranked[0][:0]
        else:
            ranked[0][0] = min(relevant[0])
        runs[name] = Run.of(ranked, [scores[: len(each)] for each in ranked])
        write_run(tmp_path / f"{name}.parquet", runs[name])
    named = {name: str(tmp_path / f"{name}.parquet") for name in runs}
    more = {"runs": named, "deciding": [*DEV], "collections": {"pydocs": str(tmp_path / "docs")}}
    write_json(path, read_json(path) | more)
    run = facts.read(path)
    pair = queries.pair_of(run, frames.gather(run))
    assert pair == ("bm25", "cdmae-stage1")
    found = queries.cases(run, *pair)
    assert set(found["kind"]) == {"improved", "worsened"}
    assert "" in found["first_before"].tolist()
    for case in found.itertuples():
        query = int(re.search(r"\d+", case.query)[0])
        for name, rank, first in zip(
            pair, (case.before, case.after), (case.first_before, case.first_after), strict=True
        ):
            ranked = runs[name].ranked(query)[0].tolist()
            ranks = [ranked.index(each) + 1 for each in relevant[query] if each in ranked]
            assert rank == min(ranks, default=0)
            assert first == (f"passage number {ranked[0]}" if ranked else "")
        assert case.relevant == f"passage number {min(relevant[query])}"
    assert "Most improved" in page_of(run, tmp_path / "report")


def test_queries_are_chosen_by_the_ratio_of_their_ranks():
    ranks = pd.DataFrame({"before": [9, 1, 0, 4, 3, 0, 0], "after": [3, 1, 1, 8, 3, 0, 7]})
    rows = queries.select(ranks).groupby("kind")["query"].agg(list).to_dict()
    assert rows == {"improved": [2, 0, 6], "worsened": [3]}


def test_a_report_declares_the_runs_it_reads(values):
    inputs = plan(values, "report")["report", ""].inputs
    assert inputs["mined"] == ["out/runs/bm25/docs.train", "out/runs/one/docs.train"]
    assert inputs["teachers"] == ["out/teachers/three.parquet"]
    assert "out/runs/one/evaluated" in inputs["runs"]


# --- parts ----------------------------------------------------------------------------------------


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
        (formats.duration, 0.42, "0.4 s"), (formats.duration, 59.7, "1 min"), (formats.duration, 312, "5 min 12 s"),
        (formats.duration, 12000, "3 h 20 min"), (formats.duration, 187200, "2 d 4 h"),
        (formats.memory, 640, "640 MB"), (formats.memory, 1433.6, "1.4 GB"),
        (formats.percent, 0.274, "27 %"), (partial(formats.plural, noun="query"), 1, "1 query"),
        (partial(formats.plural, noun="query"), 1618, "1,618 queries"),
    ],
)  # fmt: skip
def test_formats(function, value, text):
    assert function(value).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("10.2 ±0.3", 10.2), ("\N{MINUS SIGN}1.5", -1.5), ("1,618", 1618), (".034", 0.034)],
)
def test_the_number_of_a_cell_decides_which_is_best(text, value):
    assert tables.number(text) == value
    assert math.isnan(tables.number("\N{EN DASH}"))
    frame = pd.DataFrame({"name": ["a", "b"], "mean": [text, "\N{MINUS SIGN}9"]})
    assert r"\bfseries " + text.split()[0] in tables.latex(frame, "c", best=["mean"]).replace(
        "$-$", "\N{MINUS SIGN}"
    )


@pytest.mark.parametrize("bad", ["\x00", "\x0b", "\x1b", "\x9b", "\ufffe", "$a$"])
def test_a_figure_is_well_formed_whatever_is_in_its_texts(bad):
    word = f"a{bad}b<&"
    line = figures.Series(word, pd.Series([0, 1]), "s1")
    row = {"label": word, "low": 0.5, "difference": 1.0, "high": 1.5, "colour": "s2", "seeds": 1}
    forest = figures.forest(word, pd.DataFrame([row]), "x")
    drawn = [figures.lines(word, [line] * 2, "x", "y"), forest]
    for one in drawn:
        root = ElementTree.fromstring(one)
        assert root.find(".//*[@role='img']") is not None and not re.search("#0000[01]", one)
        assert "var(--ink)" in one and "http" not in re.sub("xmlns[^ >]*", "", one)


def test_benchmarks_read_dashes_as_unknown(tmp_path):
    path = tmp_path / "search" / "bm25" / "pydocs.tsv"
    path.parent.mkdir(parents=True)
    path.write_text("s\th:m:s\tmax_rss\tcpu_time\n1.5\t0:00:01\t-\tNA\n")
    (job,) = benchmarks(str(tmp_path), "").itertuples(index=False)
    assert (job.rule, job.job, job.seconds) == ("search", "bm25/pydocs", 1.5)
    assert math.isnan(job.memory) and math.isnan(job.cpu) and math.isnan(job.work)
    assert benchmarks(str(tmp_path / "nowhere"), "").empty


def test_the_origin_and_the_time_of_a_run_are_recorded(monkeypatch):
    begun = datetime.now().astimezone() - timedelta(minutes=9)
    monkeypatch.setenv(circumstances.STARTED, begun.isoformat(sep=" ", timespec="seconds"))
    monkeypatch.setenv(circumstances.COMMAND, json.dumps(["./run", "-n"]))
    found = circumstances.circumstances()
    assert found["wall"] >= 540 and found["origin"]["command"] == ["./run", "-n"]
    monkeypatch.setattr(circumstances, "_output", lambda *words: "")
    assert circumstances.origin() == {"command": ["./run", "-n"]}
