"""The page as a whole: what it shows of a run, what it leaves out, and that it loads nothing."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from synthetic_run import mean, plain, tables_of

from cdmae import circumstances, formats
from cdmae.config.schema import Config
from cdmae.fields import parse
from cdmae.files import write_json
from cdmae.report import figures, notation
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Series
from cdmae.report.page import write
from cdmae.report.sections.queries import cut
from cdmae.runs import read_run

FEW = {"pydocs": {"dev": 30}}
THREE = ("bm25", "mae-stage1", "cdmae-stage1")
HOSTILE = "<script>alert(7)</script>\x1b[2J\x00 $x$ {{ 7 * 7 }}"


def page_of(run, folder):
    """The page on a run."""
    write(run, folder)
    return (folder / "index.html").read_text()


def test_the_page_shows_machine_versions_config_and_origin_and_loads_nothing(tmp_path):
    words = ["./run", "--configfile", "/home/alice/acme.yaml", "--config", "results=/home/alice/r"]
    origin = {"commit": "4628af9", "changed": True, "command": words}
    values = synthetic_run.config(*THREE)
    run = synthetic_run.make(tmp_path / "run", values, targets=FEW, origin=origin, wall=555.0)
    page = page_of(run, tmp_path / "report")
    text = plain(page)
    for part in (
        "Xeon, 2 cores, 16 GB, no GPU",
        "torch 2.13.0",
        "numpy: 2.4.6",
        "decoder_masking: importance",
        "4628af9, with uncommitted changes",
        "./run --configfile acme.yaml --config results=r",
        "9 min 15 s from the start",
        "Training queries of mae-stage1 and cdmae-stage1: 12 with random negatives only",
    ):
        assert part in text, part
    assert "alice" not in page
    links = re.findall(r"""(?:src|href|action|poster|data)\s*=\s*["']([^"']*)""", page)
    # relative links lead to files of the run; nothing is loaded from them
    assert all(re.match(r"#|data:|\.\./|[a-z]+\.(csv|md|tex)$", link) for link in links)
    assert "../models/cdmae-stage1/README.md" in links and "../models/bm25/" not in links
    assert not re.search(r"""<(?:link|script|img|iframe)\b[^>]*(?:src|href)="(?!data:)""", page)
    assert not re.search('<th (?!scope="col")', page)
    assert not re.search(r"@import|url\((?!#)|fetch\(", page)
    write(Facts(run.config, run.circumstances), tmp_path / "again")
    for path in (tmp_path / "report").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    ("names", "trained", "sections"),
    [
        (["bm25"], False, "use measures setup"),
        (["bm25", "cdmae-stage1"], False, "use differences measures queries setup"),
        (THREE, True, "use differences measures method training queries setup"),
        ([], False, "setup"),
    ],
)
def test_missing_parts_leave_a_clean_page(tmp_path, names, trained, sections):
    run = Facts(parse(Config, {"report": {"title": "T"}}))
    if names:
        values = synthetic_run.config(*names)
        values["evaluation"]["baseline"] = "bm25"
        run = synthetic_run.make(tmp_path / "run", values, targets=FEW, trained=trained)
    page = page_of(run, tmp_path / "report")
    assert re.findall(r'<section id="(\w+)"', page) == sections.split()
    assert not re.search(r"\b(nan|None|undefined)\b", plain(page))
    assert ("What made a difference?" in page) == (len(names) > 1)
    assert "Did masking" not in page, "no pair of masks is compared"


def test_no_text_of_a_run_is_read_as_markup(tmp_path):
    values = synthetic_run.config(*THREE)
    values["report"]["title"] = HOSTILE
    name = "a<b>&$c$_{d}\x1b\ufffe"
    values["systems"][name] = values["systems"].pop("cdmae-stage1")
    run = synthetic_run.make(tmp_path / "run", values, targets=FEW, text=HOSTILE)
    terms = {"top": [[HOSTILE, 0.1]], "stop_word_share": 0.5}
    path = run.at("masked_terms", encoder="cdmae")
    write_json(path, dict.fromkeys(("uniform", "importance"), terms))
    page = page_of(run, tmp_path / "report")
    assert "Masks of cdmae" in page
    assert "<script>alert" not in page and "a<b>" not in page and "49" not in page.split("</h1>")[0]
    assert "a&lt;b&gt;&amp;$c$_{d}" in page
    figures = re.findall("<svg.*?</svg>", page, re.DOTALL)
    assert len(figures) > 2
    for figure in figures:
        ElementTree.fromstring(figure)  # it is well-formed
        assert "var(--ink)" in figure and not re.search("#0000[01]", figure)
    tex = (tmp_path / "report/results.tex").read_text()
    assert r"a$<$b$>$\&\$c\$\_\{d\}" in tex
    line = (tmp_path / "report/results.md").read_text().splitlines()
    assert any(each.startswith(r"| a\<b\>\&$c$") for each in line)


def test_many_zero_shot_collections_become_rows_and_forums_are_one(tmp_path):
    names = [f"set-{index}" for index in range(9)] + ["cqadupstack-tex", "cqadupstack-unix"]
    targets = FEW | {name: {"test": 20 + index} for index, name in enumerate(names)}
    values = synthetic_run.config("bm25", "mae-stage1")
    values["collections"] |= dict.fromkeys(names, values["collections"]["networkx"])
    run = synthetic_run.make(tmp_path / "run", values, targets=targets)
    found = tables_of(page_of(run, tmp_path / "report"))
    table = found["nDCG@10, by collection"].set_index("queries")["bm25"]
    assert list(table.index) == ["pydocs dev", *names[:9], "cqadupstack", "zero-shot average"]
    means = {name: mean(run, "bm25", Target(name, "test"), "nDCG@10") for name in names}
    forums = (means["cqadupstack-tex"] + means["cqadupstack-unix"]) / 2
    whole = (sum(means[name] for name in names[:9]) + forums) / 10
    assert table["cqadupstack"] == notation.points(forums)
    assert table["zero-shot average"] == notation.points(whole)
    overview = next(iter(found.values()))
    assert "mean of 10 collections" in overview.columns and len(overview.columns) < 9


def test_cases_have_the_largest_changes_with_ranks_and_first_passages(tmp_path):
    values = synthetic_run.config(*THREE)
    skill = {"bm25": 2.0, "cdmae-stage1": 1.9}
    run = synthetic_run.make(tmp_path / "run", values, skill=skill, targets=FEW)
    runs = {}
    for name in ("bm25", "cdmae-stage1"):
        runs[name] = read_run(run.at("run", system=name, collection="pydocs", split="dev"))
    ranks = pd.DataFrame(index=range(30), columns=list(runs), dtype=float)
    for name, found in runs.items():
        for query in ranks.index:  # its relevant passage has the same number
            ranked = found.ranked(query)[0].tolist()
            ranks.loc[query, name] = ranked.index(query) + 1 if query in ranked else math.inf
    gain = 1 / ranks["cdmae-stage1"] - 1 / ranks["bm25"]
    page = page_of(run, tmp_path / "report").replace("</dt>", "</dt> ")
    shown = [plain(each) for each in re.findall(r'<dl class="case">(.*?)</dl>', page, re.DOTALL)]
    chosen = [*gain.nlargest(5).index, *gain.nsmallest(5).index]
    for query, text in zip(chosen, shown, strict=True):
        words = [f"text dev-{query:05d} text p{query} (judged)"]
        for name, found in runs.items():
            rank = ranks.loc[query, name]
            place = "not found" if math.isinf(rank) else f"{rank:.0f}"
            first = "this passage was first" if rank == 1 else f"text p{found.ranked(query)[0][0]}"
            words.append(f"{name}: rank {place} {first}")
        assert text == " ".join(words)


def test_systems_that_differ_in_their_labels_alone_are_a_line_per_pre_training(tmp_path):
    values = synthetic_run.config(*THREE, "none-stage1")
    for number in (100, 1000):
        values["stages"][f"few-{number}"] = values["stages"]["stage1"] | {"train_queries": number}
        for name in ("mae", "cdmae"):
            system = values["systems"][f"{name}-stage1"] | {"stage": f"few-{number}"}
            values["systems"][f"{name}-{number}"] = system
    skill = {"mae-100": 4.5, "mae-1000": 4.0, "mae-stage1": 3.5}
    run = synthetic_run.make(tmp_path / "run", values, skill=skill, targets=FEW)
    page = page_of(run, tmp_path / "report")
    title = "MRR@10 by the number of training queries, pydocs dev"
    [figure] = re.findall(rf"<figcaption>{title}</figcaption>(.*?)</figure>", page, re.DOTALL)
    first, last = (100 * mean(run, name, run.deciding) for name in ("mae-100", "mae-stage1"))
    words = re.search('aria-label="(.*?)"', figure)[1].split("; ")
    assert [each.split()[0] for each in words] == ["mae", "cdmae"], "none has one number of labels"
    assert words[0] == f"mae from {first:.3g} to {last:.3g}"
    assert all(f">{number}<" in figure for number in ("100", "1,000", "4,000"))


def test_a_line_of_a_figure_differs_from_others_of_its_colour():
    curve = pd.Series(np.arange(120.0))
    drawn = figures.lines("t", [Series(name, curve, "s0") for name in "abcdefghi"], "x", "y")
    markers = re.findall(r'<use xlink:href="#(\w+)"[^>]*var\(--s0\)', drawn)
    assert len({*markers}) == 8 and len(markers) < 9 * 15
    dashed = [line for line in drawn.splitlines() if "var(--s0)" in line and "dasharray" in line]
    assert len(dashed) == 2, "the ninth, and its mark in the legend"


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (notation.points, 0.1512, "15.1"),
        (notation.signed, -0.0314, "\N{MINUS SIGN}3.1"),
        (notation.signed, -0.0001, "0.0"),
        (notation.probability, 0.0002, "p < .001"),
        (notation.probability, 0.0497, "p = .0497"),
        (partial(notation.interval, -0.013), -0.00004, "\N{MINUS SIGN}1.3 to \N{MINUS SIGN}0.004"),
        (cut, "ab " * 100, "ab " * 72 + "ab …"),
        (cut, "题 " + "字" * 300, "题 " + "字" * 218 + " …"),
        (formats.duration, 59.7, "1 min"),
        (formats.duration, 12000, "3 h 20 min"),
    ],
)
def test_formats(function, value, text):
    assert function(value).replace("\N{NO-BREAK SPACE}", " ") == text


def test_the_origin_and_the_time_of_a_run_are_recorded(monkeypatch):
    begun = datetime.now().astimezone() - timedelta(minutes=9)
    monkeypatch.setenv(circumstances.STARTED, begun.isoformat(sep=" ", timespec="seconds"))
    monkeypatch.setenv(circumstances.COMMAND, json.dumps(["./run", "-n"]))
    found = circumstances.circumstances()
    assert found["wall"] >= 540 and found["origin"]["command"] == ["./run", "-n"]
