"""A report on several seeds: one row per system, its numbers those that numpy gets from the files
of every seed.
"""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from synthetic_run import SMALL, rows_of, with_system

from cdmae.errors import InputError
from cdmae.evaluation import significance
from cdmae.files import read_json, write_json
from cdmae.report import comparisons, facts
from cdmae.report.columns import Column
from cdmae.report.facts import Target
from cdmae.report.page import write
from cdmae.report.sections import changes, comparison_table, ranking, results

DEV = Target("pydocs", "dev")
SETS = [Target("scikit-learn", "test"), Target("networkx", "test")]
SEEDS = (42, 43, 44)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that ranks six encoders with three seeds."""
    folder = tmp_path_factory.mktemp("run")
    skill = {
        **synthetic_run.SKILL,
        "simlm-stage1": 2.5,
        "retromae-stage1": 4.5,
        "dupmae-stage1": 6.2,
    }
    parts = ("trained", "benchmarks")
    synthetic_run.make(
        folder, synthetic_run.objectives(SEEDS), skill=skill, targets=SMALL, parts=parts
    )
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return facts.read(folder / "facts.json")


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "report"
    write(run, folder)
    return folder


def of_seeds(folder, system, target, measure):
    """The values of each seed as they stand in its file, [seeds, queries]."""
    rows = []
    for seed in SEEDS:
        name = system if seed == SEEDS[0] else f"{system}@{seed}"
        frame = pd.read_csv(folder / "measures" / f"{name}.tsv", sep="\t")
        chosen = (frame["collection"] == target.collection) & (frame["split"] == target.split)
        rows.append(
            frame[chosen & (frame["measure"] == measure)]
            .sort_values("query_id")["value"]
            .to_numpy()
        )
    return np.array(rows)


def test_a_value_is_the_mean_over_the_seeds_query_by_query_and_tests_pair_it(folder, run):
    expected = of_seeds(folder, "mae-stage1", DEV, "RR@10")
    assert expected.shape == (3, 150) and (expected[0] != expected[1]).any()
    np.testing.assert_allclose(
        run.per_query("mae-stage1", DEV, "RR@10").sort_index(), expected.mean(0)
    )
    np.testing.assert_allclose(run.by_seed("mae-stage1", DEV, "RR@10"), expected.mean(1))
    assert len(run.by_seed("bm25", DEV, "RR@10")) == 1
    assert run.systems == list(run.config["systems"])
    gap = Column.of(run, DEV).alone("cdmae-stage1", "mae-stage1")
    ours, theirs = (
        of_seeds(folder, name, DEV, "RR@10").T for name in ("cdmae-stage1", "mae-stage1")
    )
    assert (gap.difference, gap.error, gap.seeds) == pytest.approx(by_hand([ours - theirs]))


def by_hand(sets):
    """Mean, standard error and seeds of differences [queries, seeds], averaged over sets."""
    queries = [values.mean(1).var(ddof=1) / len(values) for values in sets]
    seeds = np.mean([values.mean(0) for values in sets], axis=0)
    variance = sum(queries) / len(sets) ** 2 + seeds.var(ddof=1) / len(seeds)
    return seeds.mean(), np.sqrt(variance), len(seeds)


def test_a_seed_of_an_entry_s_own_is_listed_and_does_not_join_the_mean(tmp_path):
    values = with_system(
        synthetic_run.config() | {"seed": list(SEEDS)}, "again", encoder={"seed": 7}
    )
    path = synthetic_run.make(tmp_path, values, targets={"pydocs": {"dev": 30}}, parts=())
    facts_file = read_json(path)
    for seed in SEEDS[1:]:
        del facts_file["measures"][f"again@{seed}"]
    write_json(path, facts_file)
    run = facts.read(path)
    assert ["cdmae-stage1", "again"] in comparisons.repeated(run)
    assert run.by_seed("again", DEV, "RR@10") == [run.value("again", DEV, "RR@10")]
    assert (
        rows_of(results.measures_table(Column.of(run, DEV)))["again"][
            "MRR@10, deviation over 3 seeds"
        ]
        == ""
    )
    assert (
        len(
            rows_of(changes.seed_table(Column.of(run, DEV)))["cdmae-stage1 and again"][
                "values"
            ].split(", ")
        )
        == 4
    )


def test_seeds_measured_on_different_queries_are_refused(tmp_path):
    values = synthetic_run.config() | {"seed": list(SEEDS)}
    path = synthetic_run.make(tmp_path, values, targets={"pydocs": {"dev": 30}}, parts=())
    other = tmp_path / "measures" / "mae-stage1@44.tsv"
    other.write_text(other.read_text().replace("dev-00007", "dev-99999"))
    with pytest.raises(
        InputError, match="the seeds of mae-stage1 on pydocs dev are for different queries"
    ):
        facts.read(path)


def test_encoders_are_ranked_by_their_mean_with_tests_against_the_baseline(folder, run):
    (ranked,) = ranking.rankings(run)
    names = [f"{name}-stage1" for name in ("none", "mae", "cdmae", "retromae", "dupmae", "simlm")]
    means = {name: of_seeds(folder, name, DEV, "RR@10").mean() for name in names}
    assert list(ranked.systems) == sorted(names, key=means.get, reverse=True)
    others = [name for name in ranked.systems if name != "mae-stage1"]
    every = [name for name in run.systems if name != "mae-stage1"]
    gaps = [Column.of(run, DEV).alone(name, "mae-stage1") for name in every]
    corrected = dict(zip(every, significance.corrected(gaps), strict=True))
    table = rows_of(ranking.ranking_table(ranked))
    assert list(table) == [name.removesuffix("-stage1") for name in ranked.systems]
    for name in others:
        gap = corrected[name]
        row = table[name.removesuffix("-stage1")]
        assert float(row["over mae-stage1"]) == pytest.approx(
            100 * (means[name] - means["mae-stage1"]), rel=1e-4
        )
        assert float(row["p, Holm"]) == pytest.approx(gap.p, rel=1e-4)
        low, high = map(float, row["interval, Holm"].split(" to "))
        assert (low, high) == pytest.approx((100 * gap.low, 100 * gap.high), rel=1e-4)
        words = {"better": "better", "worse": "worse", "open": "undecided"}[gap.verdict]
        assert row["reading"] == words
        assert (low > 0, high < 0) == (words == "better", words == "worse")
    assert {row["reading"] for row in table.values()} == {
        "better",
        "worse",
        "undecided",
        "the baseline",
    }
    assert (table["simlm"]["pre-training"], table["none"]["pre-training"]) == (
        "188.2",
        "\N{EN DASH}",
    )


def test_equal_encoders_are_ordered_by_all_targets_and_three_are_no_ranking(run):
    values = dict(run.values)
    values["dupmae-stage1", DEV, "RR@10"] = values["simlm-stage1", DEV, "RR@10"]
    values["dupmae-stage1", SETS[0], "nDCG@10"] = values["simlm-stage1", SETS[0], "nDCG@10"] + 1.0
    (ranked,) = ranking.rankings(facts.Facts(run.config, values))
    names = list(ranked.systems)
    assert names.index("simlm-stage1") == names.index("dupmae-stage1") + 1
    values = {
        key: series
        for key, series in run.values.items()
        if not re.match("retromae|dupmae|simlm", key[0])
    }
    assert ranking.section(facts.Facts(run.config, values)) is None


def test_a_ranking_without_baseline_compares_with_none(run):
    config = run.config | {"evaluation": run.config["evaluation"] | {"baseline": ""}}
    section = ranking.section(facts.Facts(config, run.values))
    assert list(section.tables[0].columns) == ["encoder", "MRR@10", "pre-training"]
    assert [figure.name for figure in section.figures] == ["ranking-stage1"]


def test_the_page_shows_seeds_as_one_system(page):
    text = (page / "index.html").read_text()
    assert "seeds 42, 43 and 44" in text and "Curves are from seed 42." in text
    assert "and 3 seeds; 95&nbsp;% interval" in re.sub(r"\s+", " ", text)
    assert "@43" not in text
    assert '<section id="ranking"' in text
    assert {"ranking-stage1", "ranking-differences-stage1"} <= {
        path.stem for path in page.glob("figures/*.svg")
    }


def test_every_form_of_a_table_shows_the_spread(folder, page):
    means = 100 * of_seeds(folder, "cdmae-stage1", DEV, "RR@10").mean(1)
    mean, deviation = f"{means.mean():.1f}", f"{np.std(means, ddof=1):.1f}"
    form = {
        kind: (page / "tables" / f"ranking-stage1.{kind}").read_text()
        for kind in ("md", "tex", "html", "csv")
    }
    assert f"| cdmae | {mean} \N{PLUS-MINUS SIGN}{deviation} |" in re.sub(" +", " ", form["md"])
    assert "; \N{PLUS-MINUS SIGN}: standard deviation over 3 seeds, where" in form["md"]
    assert f"cdmae & {mean} $\\pm${deviation} &" in form["tex"]
    assert f'{mean}<span class="spread">\N{PLUS-MINUS SIGN}{deviation}</span>' in form["html"]
    assert form["csv"].startswith('encoder,MRR@10,"MRR@10, deviation over 3 seeds",')


def test_a_system_of_the_first_seed_is_compared_with_the_first_seed_of_the_other(folder, run):
    once = {
        key: frame.iloc[:, :1] if key[0] == "cdmae-stage2" else frame
        for key, frame in run.values.items()
    }
    mixed = dataclasses.replace(run, values=once)
    both = [of_seeds(folder, name, DEV, "RR@10") for name in ("cdmae-stage2", "cdmae-stage1")]
    column = Column.of(mixed, DEV)
    gap = column.alone("cdmae-stage2", "cdmae-stage1")
    assert gap == significance.paired(both[0][0], both[1][0]) and gap.seeds == 1
    over = column.alone("cdmae-stage1", "bm25")
    assert over.a == pytest.approx(both[1].mean()) and over.seeds == 3
    assert column.alone("bm25", "cdmae-stage2").seeds == 1
    row = rows_of(comparison_table("x", "cdmae-stage2", "cdmae-stage1", [Column.of(mixed, DEV)]))
    assert float(row["pydocs dev, MRR@10"]["cdmae-stage1"]) == pytest.approx(
        100 * both[1][0].mean(), rel=1e-4
    )
