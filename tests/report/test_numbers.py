"""Every number of the page is that of the CSV files, and those are computed from the measures."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import synthetic_run
from synthetic_run import plain, tables_of

from cdmae import formats
from cdmae.evaluation.significance import corrected, pooled
from cdmae.files import write_json
from cdmae.report import columns, comparisons, frames, notation, page

SEEDS = (42, 43, 44)
DEV, TEST = ("pydocs", "dev"), ("pydocs", "test")
ZERO_SHOT = [("scikit-learn", "test"), ("networkx", "test")]
ALL = "the mean of 4 sets of queries"
COLUMNS = {
    ALL: [TEST, DEV, *ZERO_SHOT],
    "pydocs test": [TEST],
    "pydocs dev": [DEV],
    "scikit-learn": ZERO_SHOT[:1],
    "networkx": ZERO_SHOT[1:],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with three seeds, of which some systems have one.

    The weights of its fusion were chosen on dev, where it has other values.
    """
    folder = tmp_path_factory.mktemp("run")
    skill = synthetic_run.SKILL | {"fused": 0.2}
    origin = {"command": ["./run", "-n", "--configfile", "a.yaml", "b.yaml", "report", "-j", "4"]}
    values = synthetic_run.config(seed=list(SEEDS))
    for name in ("none-stage1", "cdmae-stage2", "cdmae-stage3", "cdmae-reranker"):
        values["systems"][name]["once"] = True
    facts = synthetic_run.make(folder, values, skill=skill, origin=origin)
    frame = pd.read_csv(folder / "measures/fused.tsv", sep="\t")
    rows = frame[(frame["split"] == "dev") & (frame["measure"] == "RR@10")]
    held_out = dict(zip(rows["query_id"], (0.9 * rows["value"]).tolist(), strict=True))
    about = {"systems": ["bm25", "cdmae-stage3"], "weights": [0.8, 0.2]}
    about |= {"on": [*DEV], "measure": "RR@10", "held_out": held_out}
    write_json(facts.at("fusion", system="fused"), about)
    page.write(facts, folder / "report")
    return facts, folder


@pytest.fixture(scope="module")
def values(run):
    """The values of a run, [queries, seeds], by system, target and measure."""
    facts, folder = run
    found = {}
    for name in facts.config.systems:
        files = [name, *(f"{name}@{seed}" for seed in SEEDS[1:])]
        paths = [folder / f"measures/{file}.tsv" for file in files]
        read = [pd.read_csv(path, sep="\t") for path in paths if path.exists()]
        for (*target, measure), rows in read[0].groupby(["collection", "split", "measure"]):
            columns = [frame["value"].to_numpy()[rows.index] for frame in read]
            found[name, tuple(target), measure] = np.stack(columns, axis=1)
    found["fused", DEV, "RR@10"] *= 0.9
    return found


@pytest.fixture(scope="module")
def files(run):
    """The CSV files of the report by name."""
    return {path.stem: pd.read_csv(path) for path in (run[1] / "report").glob("*.csv")}


@pytest.fixture(scope="module")
def text(run):
    return (run[1] / "report/index.html").read_text()


def differences(values, pairs, targets):
    """The differences of pairs over targets with equal weight, corrected together, by pair."""
    gaps = []
    for pair in pairs:
        sets = []
        for target in targets:
            own = [values[name, target, "RR@10"] for name in pair]
            seeds = [one.shape[1] for name, one in zip(pair, own, strict=True) if name != "bm25"]
            sets.append(tuple(one[:, : min(seeds)] for one in own))
        gaps.append(pooled(sets, [1 / len(targets)] * len(targets)))
    return dict(zip(pairs, corrected(gaps), strict=True))


def numbers(gap):
    return [gap.a, gap.b, gap.difference, *gap.interval, gap.p, gap.tests]


def words_of_p(row):
    return formats.plain_spaces(notation.probability(row["p"]))


def test_the_results_are_the_means_of_the_measures_by_seed(values, files):
    found = files["results"].groupby(["system", "collection", "split", "measure"], sort=False)
    assert len(found) == len(values)
    for (name, *target, measure), rows in found:
        means = values[name, tuple(target), measure].mean(axis=0)
        assert rows["value"].tolist() == pytest.approx(means.tolist())
        seeds = [] if name == "bm25" else SEEDS[: len(means)]
        assert rows["seed"].dropna().tolist() == [*seeds]
    assert (found.size()["cdmae-stage1"] == 3).all() and (found.size()["cdmae-stage2"] == 1).all()


def test_the_comparisons_are_corrected_over_the_pairs_with_the_same_reference(run, values, files):
    """`cdmae.evaluation.significance` has tests of its own."""
    rows = files["comparisons"].set_index(["system", "reference"])
    assert set(rows["verdict"]) == {"better", "worse", "open"}
    assert ((rows["p"] < 0.05) == (rows["verdict"] != "open")).all()
    found = rows[["mean", "reference_mean", "difference", "low", "high", "p", "tests"]]
    named = rows["kind"] != "every pair"
    for on, targets in COLUMNS.items():
        own = found[named & (rows["on"] == on)]
        for _, family in own.groupby("reference"):
            gaps = differences(values, list(family.index), targets)
            for pair, gap in gaps.items():
                is_planned = on == ALL and pair == ("cdmae-stage1", "mae-stage1")
                gap = replace(gap, tests=1.0) if is_planned else gap
                assert family.loc[pair].tolist() == pytest.approx(numbers(gap))
    every = found[~named]
    pairs = list(itertools.combinations(reversed(run[0].config.systems), 2))
    assert every.index.tolist() == pairs
    for pair, gap in differences(values, pairs, [TEST]).items():
        assert every.loc[pair].tolist() == pytest.approx(numbers(gap))
    facts, reported = run[0], columns.reported(run[0])
    for pair, gap in comparisons.named(facts, reported).items():
        turned = comparisons.tested(facts, reported, comparisons.Pair(pair.reference, pair.system))
        assert (turned.difference, turned.p) == (-gap.difference, gap.p)
    planned = rows[rows["kind"] == "planned"]
    assert planned.index.tolist() == [("cdmae-stage1", "mae-stage1")]


def shown(files, name, targets, measure="RR@10"):
    """The mean over the targets with its deviation over the seeds, of results.csv, in words."""
    rows = files["results"]
    rows = rows[(rows["system"] == name) & (rows["measure"] == measure)]
    of_sets = []
    for target in targets:
        own = rows[(rows["collection"] == target[0]) & (rows["split"] == target[1])]
        of_sets.append(own["value"].to_numpy())
    means = 100 * np.mean(of_sets, axis=0)
    spread = f" ±{means.std(ddof=1):.1f}" if len(means) > 1 else ""
    return f"{means.mean():.1f}{spread}"


def test_every_number_of_a_table_is_in_the_files(files, text):
    tables = tables_of(text)
    systems = tables.pop("Every system, best first: MRR@10")
    first = [float(cell.split()[0]) for cell in systems["pydocs test"]]
    assert first == sorted(first, reverse=True)
    spent = files["costs"].set_index("system")
    for row in systems.to_dict("records"):
        for head in ("pydocs test", "pydocs dev", "scikit-learn", "networkx"):
            assert row[head] == shown(files, row["system"], COLUMNS[head]), row["system"]
        minutes = spent.loc[row["system"], "minutes"]
        assert float(row["training, min"]) == pytest.approx(minutes, abs=0.051)
    every = files["comparisons"][files["comparisons"]["kind"] == "every pair"]
    better = every[every["verdict"] == "better"][["system", "reference"]].to_numpy().tolist()
    worse = every[every["verdict"] == "worse"][["reference", "system"]].to_numpy().tolist()
    letters = dict(zip(systems["#"], systems["system"], strict=True))
    found = []
    for row in systems.to_dict("records"):
        found += [[row["system"], letters[letter]] for letter in row["exceeds"].split()]
    assert sorted(found) == sorted(better + worse)

    rows = files["comparisons"][files["comparisons"]["on"] == ALL].to_dict("records")
    expected = {(row["system"], row["reference"]): row for row in rows}
    for caption in ("Questions of this run", "Other named pairs"):
        for row in tables.pop(caption).to_dict("records"):
            own = expected.pop((row["system"], row["reference"]))
            p = words_of_p(own).removeprefix("p ").removeprefix("= ")
            numbers = [
                notation.signed(own["difference"]),
                notation.interval(own["low"], own["high"]),
            ]
            assert [row["difference"], row["interval, corrected"], row["p"]] == [*numbers, p]
            assert row["question"] == own["question"]
    assert not expected

    targets = COLUMNS | {"zero-shot average": ZERO_SHOT}
    for unit, measure in (("MRR@10", "RR@10"), ("R@50",) * 2, ("R@1000",) * 2, ("nDCG@10",) * 2):
        for row in tables.pop(unit).to_dict("records"):
            for head in [*row][1:]:
                assert row[head] == shown(files, row["system"], targets[head], measure)
    claims = 0
    rows = files["comparisons"].query("on == 'pydocs test' and kind != 'every pair'")
    rows = rows.set_index(["system", "reference"])
    for row in tables.pop("Claims of the paper, scored here").to_dict("records"):
        pair = re.match(r"(\S+) over (\S+): pydocs test, MRR@10", row["compared"])
        if pair:
            assert row["here"] == notation.signed(rows.loc[pair.groups(), "difference"])
            claims += 1
    assert claims > 3
    assert list(tables) == ["Collections"]


def test_the_numbers_of_the_sentences_are_in_the_files(files, text):
    words = plain(text[text.index("<main>") :])
    verdicts = [plain(each) for each in re.findall(r'<h2 class="verdict">(.*?)</h2>', text, re.S)]
    rows = files["comparisons"]
    assert verdicts[0] == f"fused: MRR@10 {shown(files, 'fused', [TEST])} on pydocs test"
    over = rows[(rows["kind"] != "every pair") & (rows["on"] == "pydocs test")]
    over = over.set_index(["system", "reference"]).loc["fused", "bm25"]
    interval = notation.interval(over["low"], over["high"])
    assert f"fused scores {notation.signed(over['difference'])} points compared with bm25" in words
    assert f"(interval {interval}, {words_of_p(over)})" in words
    masks = rows[rows["kind"] == "planned"].iloc[0]
    interval = notation.interval(masks["low"], masks["high"])
    assert f"95 % interval {interval}, {words_of_p(masks)}, " in words
    points = notation.points(abs(masks["difference"]))
    said = {"better": f"Yes, by {points} points.", "worse": f"No: it lost {points} points."}
    signed = notation.signed(masks["difference"])
    said["open"] = f"No difference found: {signed} points, {words_of_p(masks)}."
    assert verdicts[1] == said[masks["verdict"]]


def test_the_files_for_papers_have_the_same_cells_and_a_command_per_row(run, files, text):
    markdown = (run[1] / "report/results.md").read_text()
    tex = (run[1] / "report/results.tex").read_text()
    mean = shown(files, "cdmae-stage1", [TEST])
    row = next(each for each in markdown.splitlines() if each.startswith("| cdmae-stage1"))
    tables = [f"{run[1].name}/measured/cdmae-stage1{at}.tsv" for at in ("", "@43", "@44")]
    command = f"./run {' '.join(tables)} --configfile a.yaml b.yaml"
    assert mean in row and f"`{command}`" in row
    assert f"% cdmae-stage1: {command}\n" in tex and f"<code>{command}</code>" in text
    assert mean.replace("±", r"$\pm$") in tex and r"\toprule" in tex and r"\bfseries" in tex
    planned = files["comparisons"].query("kind == 'planned'")
    assert notation.signed(planned["difference"].iloc[0]) in markdown
    sides = {}  # of the columns, as in "| :--- | ---: |"
    for heads, line in itertools.pairwise(markdown.splitlines()):
        if line.startswith("|:"):
            sides |= zip(heads.replace(" ", "").split("|"), line.split("|"), strict=True)
    assert all(sides[head].startswith(":") for head in ("system", "question", "exceeds", "command"))
    assert all(sides[head].endswith("-:") for head in ("pydocstest", "difference", "seeds"))


def test_the_files_have_the_signs_of_questions_in_ascii(tmp_path):
    table = pd.DataFrame({"question": ["sigma: 1 → ∞"], "p": [0.5]})
    frames.Frames(pd.DataFrame(columns=frames.RESULTS), table).write(tmp_path)
    assert (tmp_path / "comparisons.csv").read_bytes() == b"question,p\nsigma: 1 -> inf,0.5\n"


def test_the_results_keep_names_that_look_like_numbers_or_gaps(tmp_path):
    rows = [["NA", "007", "1e3", "RR@10", float("nan"), 0.5]]
    pd.DataFrame(rows, columns=frames.RESULTS).to_csv(tmp_path / "results.csv", index=False)
    found = frames.read_results(tmp_path).iloc[0].tolist()
    assert found[:4] == rows[0][:4] and found[5] == 0.5
