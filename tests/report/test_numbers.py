"""Every number of the page is that of results.csv, and those are computed from the measures.

The arithmetic is written out here; only the forms of numbers are the report's own.
"""

import itertools
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from scipy.stats import t as student
from synthetic_run import SMALL, plain, tables_of

from cdmae import formats
from cdmae.files import read_json, write_json
from cdmae.report import frames, page

SEEDS = (42, 43, 44)
ONCE = ("none-stage1", "cdmae-stage2", "cdmae-stage3", "cdmae-reranker", "fused")
DEV, TEST = ("pydocs", "dev"), ("pydocs", "test")
ZERO_SHOT = [("scikit-learn", "test"), ("networkx", "test")]
EVERY = [TEST, DEV, *ZERO_SHOT]
ALL = "the mean of 4 sets of queries"
# tables without a measure
OTHER = {"Collections"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of six encoders with three seeds, of which some systems have one.

    The weights of its fusion were chosen on dev, where it has other values.
    """
    folder = tmp_path_factory.mktemp("run")
    config = synthetic_run.objectives(SEEDS)
    skill = synthetic_run.SKILL | {"simlm-stage1": 2.5, "retromae-stage1": 4.5, "fused": 0.2}
    path = synthetic_run.make(folder, config, skill=skill, targets=SMALL)
    facts = read_json(path)
    for name, seed in itertools.product(ONCE, SEEDS[1:]):
        del facts["measures"][f"{name}@{seed}"]
    frame = pd.read_csv(folder / "measures/fused.tsv", sep="\t")
    rows = frame[(frame["split"] == "dev") & (frame["measure"] == "RR@10")]
    held_out = dict(zip(rows["query_id"], (0.9 * rows["value"]).tolist(), strict=True))
    about = {"method": "convex", "systems": ["bm25", "cdmae-stage3"], "weights": [0.8, 0.2]}
    about |= {"on": [*DEV], "measure": "RR@10", "held_out": held_out}
    (folder / "fused.json").write_text(json.dumps(about))
    facts["fusions"] = {"fused": str(folder / "fused.json")}
    write_json(path, facts)
    page.build(path, folder / "report")
    return facts, folder


@pytest.fixture(scope="module")
def values(run):
    """The values of a run, [queries, seeds], by system, target and measure."""
    facts, folder = run
    found = {}
    for name in facts["config"]["systems"]:
        files = [name, *(f"{name}@{seed}" for seed in SEEDS[1:])]
        read = [
            pd.read_csv(facts["measures"][file], sep="\t")
            for file in files
            if file in facts["measures"]
        ]
        for (*target, measure), rows in read[0].groupby(["collection", "split", "measure"]):
            columns = []
            for frame in read:
                own = frame[(frame["collection"] == target[0]) & (frame["split"] == target[1])]
                own = own[own["measure"] == measure].set_index("query_id")["value"]
                columns.append(own.loc[rows["query_id"]].to_numpy())
            found[name, tuple(target), measure] = np.stack(columns, axis=1)
    held_out = read_json(folder / "fused.json")["held_out"]
    found["fused", DEV, "RR@10"] = np.array([*held_out.values()])[:, None]
    return found


@pytest.fixture(scope="module")
def read(run):
    return frames.read(run[1] / "report")


@pytest.fixture(scope="module")
def text(run):
    return (run[1] / "report/index.html").read_text()


def alone(values, a, b, targets, measure="RR@10"):
    """The mean of the differences, its standard error and degrees of freedom."""
    gaps = []
    for each in targets:
        pair = [values[name, each, measure] for name in (a, b)]
        trained = [one.shape[1] for name, one in zip((a, b), pair, strict=True) if name != "bm25"]
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


def p_of(mean, error, freedom):
    return 2 * student.sf(abs(mean) / error, freedom)


def holm(raw):
    """The factors by which p-values are raised, by key."""
    largest = 0.0
    factors = {}
    for rank, key in enumerate(sorted(raw, key=raw.get)):
        largest = max(largest, min(1.0, raw[key] * (len(raw) - rank)))
        factors[key] = largest / raw[key]
    return factors


def named(config):
    """The pairs that the config names, each once."""
    compare = config["report"]["compare"]
    pairs = [(a, b) for a, others in compare.items() for b in others if a != "*"]
    systems = list(config["systems"])
    baselines = (config["evaluation"]["baseline"], *compare["*"])
    pairs += [(a, b) for b in baselines for a in systems if a != b]
    listed = []
    for a, b in pairs:
        if (a, b) not in listed and (b, a) not in listed:
            listed.append((a, b))
    return listed


def check(row, gap, factor):
    """Compare a row of comparisons.csv with a difference and its correction."""
    mean, error, freedom = gap
    half = student.ppf(1 - 0.025 / factor, freedom) * error
    found = [row["difference"], row["low"], row["high"], row["p"]]
    p = min(1.0, factor * p_of(*gap))
    assert found == pytest.approx([mean, mean - half, mean + half, p], rel=1e-6, abs=1e-9)
    assert row["mean"] - row["reference_mean"] == pytest.approx(mean, abs=1e-9)


def test_the_results_are_the_means_of_the_measures_by_seed(values, read):
    found = read.results.groupby(["system", "collection", "split", "measure"], sort=False)
    assert len(found) == len(values)
    for (name, *target, measure), rows in found:
        means = values[name, tuple(target), measure].mean(axis=0)
        assert rows["value"].tolist() == pytest.approx(means.tolist())
        seeds = [] if name == "bm25" else [42] if name in ONCE else [*SEEDS]
        assert rows["seed"].dropna().tolist() == seeds


def test_the_comparisons_are_those_of_the_config_with_their_variance_and_correction(
    run, values, read
):
    config = run[0]["config"]
    pairs = named(config)
    columns = {
        ALL: EVERY,
        "pydocs test": [TEST],
        "pydocs dev": [DEV],
        "scikit-learn": ZERO_SHOT[:1],
        "networkx": ZERO_SHOT[1:],
    }
    rows = read.comparisons
    for on, targets in columns.items():
        own = rows[(rows["on"] == on) & rows["kind"].isin(["one thing", "named", "planned"])]
        found = {(row["system"], row["reference"]): row for row in own.to_dict("records")}
        assert set(found) == set(pairs)
        for reference in {b for _, b in pairs}:
            family = {pair: alone(values, *pair, targets) for pair in pairs if pair[1] == reference}
            factors = holm({pair: p_of(*gap) for pair, gap in family.items()})
            for pair, gap in family.items():
                planned = on == ALL and pair == ("cdmae-stage1", "mae-stage1")
                assert (found[pair]["kind"] == "planned") == planned
                check(found[pair], gap, 1.0 if planned else factors[pair])
    every = rows[rows["kind"] == "every pair"]
    gaps = {
        pair: alone(values, *pair, [TEST]) for pair in itertools.combinations(config["systems"], 2)
    }
    factors = holm({pair: p_of(*gap) for pair, gap in gaps.items()})
    assert len(every) == len(gaps)
    for row in every.to_dict("records"):
        pair = (row["system"], row["reference"])
        check(row, gaps[pair], factors[pair])


def test_every_interval_of_a_better_excludes_zero_and_of_an_undecided_includes_it(read, text):
    rows = read.comparisons
    assert set(rows["verdict"]) == {"better", "worse", "open"}
    for row in rows.itertuples():
        excluded = {"better": row.low > 0, "worse": row.high < 0, "open": row.low <= 0 <= row.high}
        assert excluded[row.verdict] and (row.p < 0.05) == (row.verdict != "open")
    printed = 0
    for table in tables_of(text).values():
        for cells in table.to_dict("records"):
            bounds = cells.get("95 % interval", formats.NONE).replace("\N{MINUS SIGN}", "-")
            if " to " not in bounds or "p" not in cells:
                continue
            low, high = map(float, bounds.split(" to "))
            p = 0.0 if cells["p"].startswith("<") else float(cells["p"])
            assert (p < 0.05) == (low > 0 or high < 0), cells
            printed += 1
    assert printed > 20


def shown(read, name, targets, measure="RR@10"):
    """The mean over the targets with its deviation over the seeds, of results.csv, in words."""
    rows = read.results
    rows = rows[(rows["system"] == name) & (rows["measure"] == measure)]
    of_sets = [
        rows[(rows["collection"] == collection) & (rows["split"] == split)]["value"].to_numpy()
        for collection, split in targets
    ]
    means = 100 * np.mean(of_sets, axis=0)
    spread = f" ±{means.std(ddof=1):.1f}" if len(means) > 1 else ""
    return f"{means.mean():.1f}{spread}"


def test_every_printed_number_is_in_the_files(run, read, text):
    tables = tables_of(text)
    checked = set()
    targets = {"pydocs test": [TEST], "pydocs dev": [DEV], "zero-shot average": ZERO_SHOT}
    targets |= {name: [(name, split)] for name, split in ZERO_SHOT}

    def take(caption):
        checked.add(caption)
        return tables[caption]

    systems = take("Every system, best first: MRR@10")
    first = {name: float(shown(read, name, [TEST]).split()[0]) for name in systems["system"]}
    assert [*first.values()] == sorted(first.values(), reverse=True)
    spent = read.cost("system")
    for row in systems.to_dict("records"):
        for head in ("pydocs test", "pydocs dev", "scikit-learn", "networkx"):
            assert row[head] == shown(read, row["system"], targets[head]), row["system"]
        minutes = spent.loc[row["system"], "minutes"]
        assert float(row["training, min"]) == pytest.approx(minutes, abs=0.051)
    every = read.comparisons[read.comparisons["kind"] == "every pair"]
    better = every[every["verdict"] == "better"][["system", "reference"]].to_numpy().tolist()
    worse = every[every["verdict"] == "worse"][["reference", "system"]].to_numpy().tolist()
    letters = dict(zip(systems["#"], systems["system"], strict=True))
    found = [
        [row["system"], letters[letter]]
        for row in systems.to_dict("records")
        for letter in row["exceeds"].split()
    ]
    assert sorted(found) == sorted(better + worse)

    rows = read.comparisons[read.comparisons["on"] == ALL].to_dict("records")
    expected = {(row["system"], row["reference"]): row for row in rows}
    for caption in ("Pairs that differ in one thing", "Other named pairs"):
        for row in take(caption).to_dict("records"):
            own = expected.pop((row["system"], row["reference"]))
            p = formats.probability(own["p"]).removeprefix("p ").removeprefix("= ")
            numbers = [formats.signed(own["difference"]), formats.interval(own["low"], own["high"])]
            assert [row["difference"], row["95 % interval"], row["p"]] == [*numbers, p]
            assert row["question"] == own["question"]
    assert not expected

    for unit, measure in (("MRR@10", "RR@10"), ("R@50",) * 2, ("R@1000",) * 2, ("nDCG@10",) * 2):
        for row in take(unit).to_dict("records"):
            for head in [*row][1:]:
                assert row[head] == shown(read, row["system"], targets[head], measure)
    claims = 0
    for row in take("Claims of the paper, scored here").to_dict("records"):
        compared = re.match(r"(\S+) over (\S+): pydocs test, MRR@10", row["compared"])
        if compared:
            own = read.comparisons
            own = own[(own["on"] == "pydocs test") & (own["kind"] != "every pair")]
            own = own[(own["system"] == compared[1]) & (own["reference"] == compared[2])]
            assert row["here"] == formats.signed(own["difference"].iloc[0])
            claims += 1
    assert claims > 3
    assert set(tables) - checked == OTHER


def test_the_numbers_of_the_sentences_are_in_the_files(read, text):
    words = plain(text[text.index("<main>") :]).replace("\N{NO-BREAK SPACE}", " ")
    verdicts = [plain(each) for each in re.findall(r'<h2 class="verdict">(.*?)</h2>', text, re.S)]
    rows = read.comparisons
    assert verdicts[0] == f"fused: MRR@10 {shown(read, 'fused', [TEST])} on pydocs test"
    over = rows[(rows["kind"] == "every pair") & (rows["system"] == "bm25")]
    over = over[over["reference"] == "fused"].iloc[0]
    interval = formats.interval(-over["high"], -over["low"])
    assert f"it scores {formats.signed(-over['difference'])} points compared with bm25" in words
    assert f"(interval {interval}, {formats.probability(over['p'])})" in words
    masks = rows[rows["kind"] == "planned"].iloc[0]
    interval = formats.interval(masks["low"], masks["high"])
    assert f"95 % interval {interval}, {formats.probability(masks['p'])}, " in words
    points = formats.points(abs(masks["difference"]))
    said = {"better": f"Yes, by {points} points.", "worse": f"No: it lost {points} points."}
    signed = formats.signed(masks["difference"])
    said["open"] = f"No difference found: {signed} points, {formats.probability(masks['p'])}."
    assert verdicts[1].replace("\N{NO-BREAK SPACE}", " ") == said[masks["verdict"]]


def test_the_files_for_papers_have_the_same_cells_and_a_command_per_row(run, read):
    folder = run[1] / "report"
    markdown = (folder / "results.md").read_text()
    tex = (folder / "results.tex").read_text()
    mean = shown(read, "cdmae-stage1", [TEST])
    line = next(line for line in markdown.splitlines() if line.startswith("| cdmae-stage1 "))
    files = " ".join(f"results/measured/cdmae-stage1{at}.tsv" for at in ("", "@43", "@44"))
    assert mean in line and f"`./run {files}`" in line
    assert f"% cdmae-stage1: ./run {files}\n" in tex
    assert mean.replace("±", r"$\pm$") in tex and r"\toprule" in tex and r"\bfseries" in tex
    difference = read.comparisons[read.comparisons["kind"] == "planned"]["difference"].iloc[0]
    assert formats.signed(difference) in markdown


def test_equal_facts_give_equal_bytes(run, tmp_path):
    page.build(run[1] / "facts.json", tmp_path / "again")
    for path in (run[1] / "report").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_the_files_keep_names_that_look_like_numbers_or_gaps(tmp_path):
    rows = [["NA", "007", "1e3", "RR@10", math.nan, 0.5]]
    empty = [pd.DataFrame(columns=columns) for columns in (frames.COSTS, frames.TRAININGS)]
    written = frames.Frames(
        pd.DataFrame(rows, columns=frames.RESULTS),
        pd.DataFrame(columns=frames.comparisons.COLUMNS),
        *empty,
    )
    written.write(tmp_path)
    found = frames.read(tmp_path).results.iloc[0].tolist()
    assert found[:4] == rows[0][:4] and found[5] == 0.5
