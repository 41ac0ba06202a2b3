"""Every pair of systems, average ranks over collections, and the origin of the page."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import synthetic_run
from scipy.stats import friedmanchisquare, ttest_rel
from synthetic_run import SMALL, rows_of

from cdmae import circumstances, formats
from cdmae.evaluation.significance import holm
from cdmae.report import facts
from cdmae.report.columns import Column
from cdmae.report.facts import Target
from cdmae.report.glossary import TERMS, term_of
from cdmae.report.page import write
from cdmae.report.pairwise import average_ranks, every_pair, groups
from cdmae.report.sections import any_two
from cdmae.report.tables import Cell

DEV = Target("pydocs", "dev")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The facts of a whole run with few queries."""
    return facts.read(synthetic_run.make(tmp_path_factory.mktemp("run"), targets=SMALL))


def test_every_pair_has_one_p_corrected_for_all_pairs(run):
    names = list(itertools.combinations(run.systems, 2))
    values = {name: run.values[name, DEV, "RR@10"].mean(axis=1) for name in run.systems}
    expected = holm([ttest_rel(values[a], values[b]).pvalue for a, b in names])
    found = every_pair(Column.of(run, DEV))
    assert list(found) == names
    assert [gap.p for gap in found.values()] == pytest.approx(expected)


def test_the_matrix_and_the_script_have_the_same_numbers(run):
    column = Column.of(run, DEV)
    rows = rows_of(any_two.matrix(column, every_pair(column)))
    order = sorted(run.systems, key=column.value, reverse=True)
    assert list(rows) == [f"{place} {name}" for place, name in enumerate(order, 1)]
    best, last = order[0], order[-1]
    gap = 100 * (column.value(best) - column.value(last))
    assert float(rows[f"1 {best}"][str(len(order))]) == pytest.approx(gap, rel=1e-4)
    assert float(rows[f"{len(order)} {last}"]["1"]) == pytest.approx(-gap, rel=1e-4)
    data = any_two.choices(run, column)
    measured = {(one["target"], one["measure"]): one for one in data["columns"]}
    assert len(measured) == len(run.targets) * len(synthetic_run.MEASURES)
    one = measured["pydocs dev", "MRR@10"]
    assert one["means"] == pytest.approx(
        [100 * column.value(name) for name in run.systems], abs=1e-4
    )
    for (half, p, certainty), gap in zip(one["tests"], every_pair(column).values(), strict=True):
        assert half == pytest.approx(1e4 * gap.half_width, abs=0.51)
        assert p == pytest.approx(1000 * gap.p, abs=0.51)
        assert (certainty == any_two.OPEN) == (gap.p >= 0.05)


def test_ranks_over_four_collections_are_tested_after_demsar(tmp_path):
    targets = {"pydocs": {"dev": 30, "test": 30}} | {f"set-{n}": {"test": 30} for n in range(4)}
    run = facts.read(synthetic_run.make(tmp_path, targets=targets, parts=()))
    found = average_ranks(run)
    assert found.sets == 5  # pydocs counts once
    columns = [Column.of(run, Target("pydocs", "test"))]
    columns += [Column.of(run, Target(f"set-{n}", "test")) for n in range(4)]
    table = [[column.value(name) for column in columns] for name in run.systems]
    assert found.p == pytest.approx(friedmanchisquare(*table).pvalue)
    assert sum(found.ranks) == pytest.approx(sum(range(1, len(run.systems) + 1)))
    assert found.ranks == sorted(found.ranks)
    # table 5 of the paper: q = 3.031 for eight systems
    assert found.critical == pytest.approx(3.031 * np.sqrt(8 * 9 / (6 * 5)), rel=1e-3)
    assert [figure.name for figure in any_two.section(run).figures] == ["ranks"]


def test_fewer_collections_have_no_ranks(run):
    assert average_ranks(run) is None
    assert not any_two.section(run).figures


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([1, 2, 3.7, 4], [(0, 1), (2, 3)]),
        ([1, 2, 2.5, 4], [(0, 2), (2, 3)]),
        ([1, 3, 5], []),
        ([1, 1, 1], [(0, 2)]),
    ],
)
def test_groups_are_the_largest_below_the_critical_difference(ranks, expected):
    assert groups(ranks, 1.6) == expected


def test_a_cell_sorts_by_its_number_where_its_text_is_another():
    assert Cell("5 min 12 s", 312.0).order == "312"
    assert [Cell("12.3", 12.31).order, Cell("\N{MINUS SIGN}0.4", -0.41).order] == ["", ""]
    assert Cell("1,618", 1618).order == "" and Cell("words").order == ""


def test_the_terms_of_measures_are_explained():
    assert term_of("MRR(rel=2)@10") == "MRR" and term_of("nDCG@10") == "nDCG"
    assert term_of("R@50") == "R" and term_of("Judged@10") == ""
    assert {"MRR", "nDCG", "Holm", "AMI", "nats"} <= set(TERMS)


def test_the_footer_names_commit_command_and_files(run, tmp_path):
    words = ["./run", "--configfile", "/home/alice/acme.yaml", "--config", "results=/home/alice/r"]
    origin = {"commit": "4628af9", "changed": True, "command": words}
    write(replace(run, origin=origin), tmp_path / "report")
    text = (tmp_path / "report/index.html").read_text()
    footer = re.sub(r"\s+", " ", text[text.index("<footer>") :])
    assert "<code>4628af9</code>, with uncommitted changes" in footer
    assert "<code>./run --configfile acme.yaml --config results=r</code>" in footer
    assert "alice" not in text
    for link in ("../models/cdmae-stage1/README.md", "../runs/fused/", "../logs/"):
        assert f'href="{link}"' in footer
    assert 'href="../models/bm25/' not in footer
    for words in TERMS.values():
        assert words in footer


def test_the_origin_of_a_run_is_recorded(monkeypatch):
    monkeypatch.setenv(circumstances.COMMAND, json.dumps(["./run", "-n"]))
    found = circumstances.origin()
    assert found["command"] == ["./run", "-n"]
    monkeypatch.setattr(circumstances, "_git", lambda *words: "")
    assert circumstances.origin() == {"command": ["./run", "-n"]}


def test_a_command_line_has_no_local_path():
    words = ["./run", "--config", "results=/home/a/b", "../c/d.yaml"]
    assert formats.command_line(words) == "./run --config results=b d.yaml"
