"""The README's numbers are those of config/expected.csv, with which a run is compared."""

import re
import runpy
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from cdmae.errors import InputError
from cdmae.evaluation import expected

ROOT = Path(__file__).resolve().parents[2]
ENGINEER = ("docs/results.md", "## What should an engineer do?")
# where the numbers of a run are shown, by its config files
SECTIONS = {
    "": ("README.md", "## Results"),
    "config/evidence.yaml config/overlays/evidence-squad.yaml": (
        "docs/results.md",
        "## How many labels replace pre-training?",
    ),
    "config/wikipedia.yaml": ("docs/results.md", "## Wikipedia"),
    "config/objectives.yaml": ("docs/results.md", "## Pre-trainings under one trainer"),
    "config/objectives.yaml config/overlays/objectives-wikipedia.yaml": (
        "docs/results.md",
        "### Pre-trainings on Wikipedia",
    ),
    "config/systems.yaml": ("docs/results.md", "## The systems of table 1 under one trainer"),
    "config/evidence.yaml": ("docs/results.md", "### Documentation by the number of labels"),
    "config/evidence.yaml config/overlays/evidence-wikipedia.yaml": (
        "docs/results.md",
        "### Wikipedia by the number of labels",
    ),
    "config/evidence.yaml config/overlays/evidence-medquad.yaml": (
        "docs/results.md",
        "### MedQuAD by the number of labels",
    ),
    "config/evidence.yaml config/overlays/evidence-checkpoint.yaml": (
        "docs/results.md",
        "### From a published checkpoint",
    ),
    "config/objectives-labels.yaml config/overlays/objectives-labels-wikipedia.yaml": (
        "docs/results.md",
        "### The best pre-trainings on Wikipedia",
    ),
    "config/objectives-labels.yaml config/overlays/objectives-labels-medquad.yaml": (
        "docs/results.md",
        "### The best pre-trainings on MedQuAD",
    ),
    "config/objectives-labels.yaml": (
        "docs/results.md",
        "### The best pre-trainings by the number of labels",
    ),
    "config/objectives-labels.yaml config/overlays/objectives-labels-squad.yaml": (
        "docs/results.md",
        "### The best pre-trainings on SQuAD",
    ),
    "config/engineer.yaml": ENGINEER,
    "config/engineer.yaml config/overlays/engineer-boolq.yaml": ENGINEER,
    "config/engineer.yaml config/overlays/engineer-wikipedia.yaml": ENGINEER,
    "config/engineer.yaml config/overlays/engineer-medquad.yaml": ENGINEER,
    "config/engineer.yaml config/overlays/engineer-squad.yaml": ENGINEER,
}


def shown(page, heading):
    """The numbers of the tables in a section of a page, by the first cell of their row."""
    section = (ROOT / page).read_text().partition(f"\n{heading}\n")[2].partition("\n##")[0]
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        # neither costs nor published numbers, which are in parentheses
        own = [cell for cell in cells[1:] if not re.fullmatch(r"|\(.*\)|.* (ms|min)", cell)]
        values = [re.match(r"[+-]?\d+\.\d", cell) for cell in own]
        if line.startswith("| ") and values and all(values):
            rows[cells[0]] = [float(value[0]) for value in values]
    return rows


def test_pages_show_the_expected_numbers():
    """Every row of their sections is expected, and every expected row is there."""
    numbers = expected.read(ROOT / "config/expected.csv")
    assert set(numbers["configfile"]) == set(SECTIONS)
    section = numbers["configfile"].map(SECTIONS)
    for page, heading in section.unique():
        own = numbers[section == (page, heading)]
        assert shown(page, heading) == own.groupby("label", sort=False)["value"].agg(list).to_dict()


def test_the_figure_shows_the_expected_numbers(tmp_path):
    runpy.run_path(str(ROOT / "docs/labels.py"))["draw"](tmp_path / "labels.svg")
    files = (tmp_path / "labels.svg", ROOT / "docs/labels.svg")
    # the names of clipping paths are hashes of coordinates, whose last digit depends on the processor
    drawn, kept = (re.sub(r"\bp[0-9a-f]{10}\b", "", file.read_text()) for file in files)
    assert drawn == kept, "run make figure"


def numbers(*rows):
    """Expected numbers in one table, for (label, system, minus), on dev."""
    same = {"table": "T", "configfile": "config/a.yaml", "seeds": "42 43", "measure": "RR@10"}
    on = {"column": "dev", "collection": "own", "split": "dev", "value": 0.0, "noise": 0.0}
    return pd.DataFrame(rows, columns=["label", "system", "minus"]).assign(**same, **on)


def results(**means):
    """The results of a run: the means of systems by seed."""
    rows = [
        (name, "own", "dev", "RR@10", seed, value)
        for name, values in means.items()
        for seed, value in enumerate(values)
    ]
    columns = ["system", "collection", "split", "measure", "seed", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_a_run_is_compared_with_the_mean_and_the_noise_of_its_seeds():
    wanted = numbers(("one", "one", ""), ("one minus two", "one", "two"))
    measured = partial(expected.measured, wanted, learns=lambda name: name != "bm25")
    found = measured(results(one=[0.2, 0.25, 0.3], two=[0.1, 0.1, 0.1]))
    assert found["value"].tolist() == [25.0, 15.0]
    # a standard deviation of 5, and two degrees of freedom
    assert found["noise"].tolist() == [17.6, 17.6]
    same = measured(results(one=[0.2504] * 3, two=[0.0804] * 3))
    assert expected.verdicts(found, same).tolist() == ["OK", "OKish"]
    other = measured(results(one=[0.5], two=[0.35]))
    assert expected.verdicts(found, other).tolist() == ["FAIL", "OK"]
    assert other["noise"].tolist() == [0.1, 0.1]
    both = numbers(("one", "one", ""), ("once", "once", ""), ("BM25", "bm25", ""))
    run = results(one=[0.2, 0.25, 0.3], once=[0.4], bm25=[0.4])
    found = expected.measured(both, run, lambda name: name != "bm25")
    assert found["noise"].tolist() == [17.6, 30.4, 0.1]
    with pytest.raises(InputError, match=r"the run has no RR@10 of once on own dev"):
        expected.measured(both, results(one=[0.2]), lambda name: True)
