"""Every number of the page that rests on measures, computed again from the files of the measures.

The arithmetic is written out here; only the forms of numbers are the report's own.
"""

import html
import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from scipy.stats import t as student
from synthetic_run import SMALL

from cdmae import formats
from cdmae.files import read_json, write_json
from cdmae.report import page

SEEDS = (42, 43, 44)
ONCE = ("none-stage1", "cdmae-stage2", "cdmae-stage3", "cdmae-reranker", "fused")
DEV, TEST = ("pydocs", "dev"), ("pydocs", "test")
ZERO_SHOT = [("scikit-learn", "test"), ("networkx", "test")]
NAMES = {"MRR@10": "RR@10"}
# tables without a number that rests on a measure
OTHER = {"collections", "encoders", "systems", "fusions", "masked-terms", "sigma", "cost", "jobs"}


class Measures:
    """The values of a run, [queries, seeds], and the comparisons that its config lists."""

    def __init__(self, folder, config, held_out):
        self.systems = list(config["systems"])
        self.values = {}
        for name in self.systems:
            files = [folder / f"{name}.tsv", *(folder / f"{name}@{seed}.tsv" for seed in SEEDS[1:])]
            frames = [pd.read_csv(file, sep="\t") for file in files if file.exists()]
            for key, rows in frames[0].groupby(["collection", "split", "measure"]):
                ids = rows["query_id"].tolist()
                columns = []
                for frame in frames:
                    own = frame.set_index(["collection", "split", "measure"]).loc[[key]]
                    columns.append(own.set_index("query_id")["value"].loc[ids].to_numpy())
                self.values[name, key[:2], key[2]] = np.stack(columns, axis=1)
        self.disk = {key: values[:, :1] for key, values in self.values.items()}
        self.disk["fused", DEV, "RR@10"] = held_out[:, None]
        baseline = config["evaluation"]["baseline"]
        compare = config["report"]["compare"]
        named = [(a, b) for a, others in compare.items() for b in others if a != "*"]
        of_all = [(a, b) for b in (baseline, *compare["*"]) for a in self.systems if a != b]
        self.listed = []
        for a, b in [*named, *of_all]:
            if (a, b) not in self.listed and (b, a) not in self.listed:
                self.listed.append((a, b))

    def mean(self, name, targets, measure, values=None):
        """The mean over the targets with its deviation over the seeds, in words."""
        of_seeds = [(values or self.values)[name, each, measure].mean(axis=0) for each in targets]
        means = np.mean(of_seeds, axis=0)
        spread = f"±{100 * means.std(ddof=1):.1f}" if len(means) > 1 else ""
        return f"{100 * means.mean():.1f}{spread}"

    def alone(self, a, b, targets, measure, values=None):
        """The mean of the differences, its standard error and degrees of freedom."""
        values = values or self.values
        gaps = []
        for each in targets:
            pair = [values[name, each, measure] for name in (a, b)]
            trained = [
                one.shape[1] for name, one in zip((a, b), pair, strict=True) if name != "bm25"
            ]
            gaps.append(np.subtract(*(one[:, : min(trained)] for one in pair)))
        parts = []
        for gap in gaps:
            of_queries = gap.mean(axis=1)
            squares = ((of_queries - of_queries.mean()) ** 2).sum()
            variance = squares / (len(gap) - 1) / len(gap) / len(gaps) ** 2
            parts.append((variance, len(gap) - 1))
        of_seeds = np.mean([gap.mean(axis=0) for gap in gaps], axis=0)
        if len(of_seeds) > 1:
            squares = ((of_seeds - of_seeds.mean()) ** 2).sum()
            parts.append((squares / (len(of_seeds) - 1) / len(of_seeds), len(of_seeds) - 1))
        total = sum(variance for variance, _ in parts)
        freedom = total**2 / sum(variance**2 / free for variance, free in parts)
        return of_seeds.mean(), np.sqrt(total), freedom

    def family(self, reference, more=()):
        """The systems that are compared with a reference, and further ones."""
        names = [name for name in self.systems if (name, reference) in self.listed]
        return [*names, *(name for name in more if name not in names)]

    def factor(self, a, b, targets, measure, values=None, more=()):
        """The factor by which Holm's correction raises p."""
        if (a, b) not in self.listed and (b, a) in self.listed:
            return self.factor(b, a, targets, measure, values)
        turned = {name for name in more if (b, name) in self.listed}
        names = [name for name in self.family(b, [a, *more]) if name not in turned]
        raw = {name: p_of(*self.alone(name, b, targets, measure, values)) for name in names}
        largest = 0.0
        for rank, name in enumerate(sorted(raw, key=raw.get)):
            largest = max(largest, min(1.0, raw[name] * (len(raw) - rank)))
            if name == a:
                return largest / raw[name]
        raise AssertionError(f"{a} is not compared with {b}")

    def cells(self, a, b, targets, measure, values=None, more=(), factor=None):
        """The difference, the interval and p as a table shows them."""
        mean, error, freedom = self.alone(a, b, targets, measure, values)
        if factor is None:
            factor = self.factor(a, b, targets, measure, values, more)
        half = student.ppf(1 - 0.025 / factor, freedom) * error
        p = min(1.0, factor * p_of(mean, error, freedom))
        assert (p < 0.05) == (mean - half > 0 or mean + half < 0), "the interval is the verdict"
        shown = formats.probability(p).removeprefix("p ").removeprefix("= ")
        return [formats.signed(mean), formats.interval(mean - half, mean + half), shown]


def p_of(mean, error, freedom):
    return 2 * student.sf(abs(mean) / error, freedom)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of six encoders with three seeds, of which some systems have one."""
    folder = tmp_path_factory.mktemp("run")
    config = synthetic_run.objectives(SEEDS)
    skill = synthetic_run.SKILL | {"simlm-stage1": 2.5, "retromae-stage1": 4.5, "fused": 0.2}
    path = synthetic_run.make(folder, config, skill=skill, targets=SMALL)
    facts = read_json(path)
    for name, seed in itertools.product(ONCE, SEEDS[1:]):
        del facts["measures"][f"{name}@{seed}"]
        (folder / f"measures/{name}@{seed}.tsv").unlink()
    frame = pd.read_csv(folder / "measures/fused.tsv", sep="\t")
    rows = frame[(frame["split"] == "dev") & (frame["measure"] == "RR@10")]
    held_out = dict(zip(rows["query_id"], (0.9 * rows["value"]).tolist(), strict=True))
    about = {"method": "convex", "systems": ["bm25", "cdmae-stage3"], "weights": [0.8, 0.2]}
    about |= {"on": [*DEV], "measure": "RR@10", "held_out": held_out}
    (folder / "fused.json").write_text(json.dumps(about))
    facts["fusions"] = {"fused": str(folder / "fused.json")}
    write_json(path, facts)
    page.build(path, folder / "report")
    measures = Measures(folder / "measures", config, np.array([*held_out.values()]))
    return measures, (folder / "report/index.html").read_text()


def tables_of(text):
    """The tables of the page: the caption, the heads, and the rows as texts, by name."""
    found = {}
    for name, body in re.findall(
        r'<figure class="table" id="table-(.*?)">(.*?)</figure>', text, re.S
    ):
        caption = plain(body.partition("<figcaption>")[2].partition(" <span")[0])
        lines = re.findall(r"<tr>(.*?)</tr>", body, re.S)
        rows = [
            [plain(re.sub(r'<span class="mark".*?</span>', "", cell)) for cell in cells]
            for cells in (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.S) for line in lines)
        ]
        found[name] = (caption, rows[0], rows[1:])
    return found


def plain(text):
    return html.unescape(re.sub("<[^>]+>", "", text)).strip()


def targets_of(name):
    """The targets of a column, by its name."""
    both = {"the mean of all": [DEV, TEST, *ZERO_SHOT], "average": ZERO_SHOT}
    if name in both:
        return both[name]
    collection, _, split = name.removesuffix(", zero-shot").partition(" ")
    return [(collection, split or "test")]


def check_means(measures, found, values=None):
    """Check the cells of a table with a row per system and a column per target or measure."""
    caption, heads, rows = found
    for row in rows:
        for head, cell in zip(heads[1:], row[1:], strict=True):
            name, _, unit = head.rpartition(", ")
            own = re.match(r"(pydocs \w+), [\d,]+ queries|(.*) on collections whose", caption)
            if own and own[1]:
                name, unit = own[1], head
            elif own:
                name, unit = head, own[2]
            measure = NAMES.get(unit, unit)
            if measure in ("RR@10", "nDCG@10", "R@50", "R@1000"):
                assert cell == measures.mean(row[0], targets_of(name), measure, values), (
                    row[0],
                    head,
                )


def check_comparison(measures, found, a, b):
    """Check a table with a row per target for two systems."""
    for name, first, second, *cells in found[2]:
        planned = name.startswith("the mean of all")
        name, _, unit = name.rpartition(", ")
        targets, measure = targets_of(name), NAMES.get(unit, unit)
        for system, cell in ((a, first), (b, second)):
            if cell.endswith("(seed 42)"):
                of_first = np.mean(
                    [measures.disk[system, each, measure].mean() for each in targets]
                )
                assert cell == f"{100 * of_first:.1f} (seed 42)"
            else:
                assert cell == measures.mean(system, targets, measure)
        expected = measures.cells(a, b, targets, measure, factor=1.0 if planned else None)
        assert cells == expected, (a, b, name)


def test_every_number_of_the_page_is_that_of_the_measures(run):
    measures, text = run
    tables = tables_of(text)
    checked = set()

    def take(name):
        checked.add(name)
        return tables[name]

    for name in ("overview", "results-pydocs-dev", "results-pydocs-test"):
        check_means(measures, take(name))
    for name in [name for name in tables if name.startswith("zero-shot-")]:
        check_means(measures, take(name))
    check_comparison(measures, take("answer"), "cdmae-stage1", "mae-stage1")
    check_comparison(measures, take("combined-fused"), "fused", "bm25")
    check_comparison(measures, take("combined-cdmae-reranker"), "cdmae-reranker", "cdmae-stage2")

    others = [name for name in measures.systems if name != "bm25"]
    for name, mean, *cells in take("systems-to-use")[2]:
        assert mean == measures.mean(name, [TEST], "RR@10", measures.disk)
        if name != "bm25":
            compared = (name, "bm25", [TEST], "RR@10", measures.disk)
            assert cells[:3] == measures.cells(*compared, more=others)
        assert cells[3] == measures.mean(name, [DEV], "RR@10", measures.disk)

    for encoder, mean, *cells in take("ranking-stage1")[2]:
        name = f"{encoder}-stage1"
        assert mean == measures.mean(name, [DEV], "RR@10")
        if name != "mae-stage1":
            assert cells[:3] == measures.cells(name, "mae-stage1", [DEV], "RR@10")

    for target in (DEV, TEST):
        _, heads, rows = take(f"stages-{target[0]}-{target[1]}")
        for name, after, *cells in rows:
            for head, cell in zip(heads[2:5], cells[:3], strict=True):
                assert cell == measures.mean(name, [target], NAMES.get(head, head))
            if after != formats.NONE:
                assert cells[3:] == measures.cells(name, after, [target], "RR@10")

    for _, name, mean, *cells in take("changes-encoder-objective-mae-stage1")[2]:
        assert mean == measures.mean(name, [DEV], "RR@10")
        if name != "mae-stage1":
            assert cells == measures.cells(name, "mae-stage1", [DEV], "RR@10")
    for *_, systems, before, after, difference, interval, p in take("changes")[2]:
        reference, name = systems.split(" → ")
        assert before == measures.mean(reference, [DEV], "RR@10")
        assert after == measures.mean(name, [DEV], "RR@10")
        cells = [difference, interval, p]
        assert cells == measures.cells(name, reference, [DEV], "RR@10")

    for names, values, deviation in take("seeds")[2]:
        means = 100 * measures.values[names, DEV, "RR@10"].mean(axis=0)
        assert values == ", ".join(f"{mean:.1f}" for mean in means)
        assert deviation == f"{means.std(ddof=1):.2f}"

    scored = 0
    for row in take("claims")[2]:
        compared = re.match(r"(\S+) over (\S+): (\S+), (pydocs dev|2 collections)$", row[-1])
        if compared:
            a, b, unit, on = compared.groups()
            targets = [DEV] if on == "pydocs dev" else ZERO_SHOT
            cells = measures.cells(a, b, targets, NAMES.get(unit, unit))
            assert [row[3], row[4]] == cells[:2], row[0]
            scored += 1
    assert scored > 4
    assert set(tables) - checked == OTHER & set(tables), "a table that is not checked"


def test_the_numbers_of_the_first_sentences_are_those_of_the_measures(run):
    measures, text = run
    words = " ".join(plain(text[text.index("<main>") :]).split())
    verdicts = [plain(each) for each in re.findall(r'<h2 class="verdict">(.*?)</h2>', text, re.S)]
    mean = measures.mean("fused", [TEST], "RR@10", measures.disk)
    assert verdicts[0] == f"fused: MRR@10 {mean} on pydocs test"
    difference, interval, p = measures.cells(
        "fused", "bm25", [TEST], "RR@10", measures.disk, factor=1
    )
    p = f"p {p}" if p.startswith("<") else f"p = {p}"
    lead = f"it scores {difference} points compared with bm25 (95 % interval {interval}, {p})."
    assert lead in words.replace("\N{NO-BREAK SPACE}", " ")
    every = [DEV, TEST, *ZERO_SHOT]
    difference, interval, p = measures.cells("cdmae-stage1", "mae-stage1", every, "RR@10", factor=1)
    assert f"By how much{difference} points" in words
    assert f"95 % interval {interval}" in words


def test_every_printed_interval_excludes_zero_exactly_where_the_printed_p_is_below_a_twentieth(run):
    verdicts = []
    for _, heads, rows in tables_of(run[1]).values():
        if "p, Holm" not in heads:
            continue
        for row in rows:
            cells = dict(zip(heads, row, strict=True))
            if cells["p, Holm"] in ("", formats.NONE):
                continue
            bounds = cells["interval, Holm"].replace("\N{MINUS SIGN}", "-").split(" to ")
            low, high = map(float, bounds)
            p = 0.0 if cells["p, Holm"].startswith("<") else float(cells["p, Holm"])
            assert (p < 0.05) == (low > 0 or high < 0), row
            verdicts.append(p < 0.05)
    assert {True, False} == set(verdicts) and len(verdicts) > 40
