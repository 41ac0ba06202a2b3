"""The README's numbers are those of config/expected.csv, with which a run is compared."""

import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from cdmae.errors import InputError
from cdmae.evaluation import expected

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_shows_the_expected_numbers():
    """Every row of the section on results is expected, and every expected row is there."""
    section = (ROOT / "README.md").read_text().partition("\n## Results\n")[2].partition("\n## ")[0]
    shown = {}
    for line in section.splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        numbers = [re.match(r"[+-]?\d+\.\d", cell) for cell in cells[1:]]
        if line.startswith("| ") and all(numbers):
            shown[cells[0]] = [float(number[0]) for number in numbers]
    numbers = expected.read(ROOT / "config/expected.csv")
    assert shown == numbers.groupby("label", sort=False)["value"].agg(list).to_dict()


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
    assert found["noise"].tolist() == [17.6, 17.6, 0.1]
    with pytest.raises(InputError, match=r"the run has no RR@10 of once on own dev"):
        expected.measured(both, results(one=[0.2]), lambda name: True)
