"""The page of a real run: its order is the config's, and its numbers are those of the measures."""

from __future__ import annotations

import pandas as pd
import pytest
from synthetic_run import plain, tables_of

from cdmae import formats
from cdmae.config.seeds import first
from cdmae.files import read_json

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def page(smoke):
    return (smoke.results / "report/index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def numbers(smoke):
    return {path.stem: pd.read_csv(path) for path in (smoke.results / "report").glob("*.csv")}


def test_systems_and_collections_have_the_order_of_the_config(smoke, config, numbers, page):
    assert list(config.systems) != sorted(config.systems), "a config in which the order shows"
    tables = tables_of(page)
    assert numbers["results"]["system"].unique().tolist() == first(config.systems)
    assert tables["MRR@10"]["system"].tolist() == first(config.systems)
    assert tables["Collections"]["collection"].tolist() == list(config.collections)
    known = read_json(smoke.results / "facts.json")["config"]
    for section, entries in config.values().items():
        if isinstance(entries, dict):
            assert list(known[section]) == list(entries), section


def test_the_results_are_the_means_of_every_seeds_measures(smoke, config, numbers):
    for name in first(config.systems):
        for seed in config.seed:
            file = name if seed == config.seed[0] else f"{name}@{seed}"
            path = smoke.results / f"measures/{file}.tsv"
            if not path.exists() or config.systems[name].kind == "fusion":
                continue  # trained once; a fusion counts with held-out weights
            keys = ["collection", "split", "measure"]
            means = pd.read_csv(path, sep="\t").groupby(keys)["value"].mean()
            rows = numbers["results"]
            rows = rows[rows["system"] == name]
            own = rows[(rows["seed"] == seed) | rows["seed"].isna()].set_index(keys)["value"]
            pd.testing.assert_series_equal(own.sort_index(), means, atol=1e-9)


def test_the_first_screen_has_the_planned_comparison_and_the_weights(smoke, numbers, page):
    words = plain(page)
    rows = numbers["comparisons"]
    row = rows[rows["kind"] == "planned"].iloc[0]
    assert [row["system"], row["reference"], row["seeds"]] == ["cdmae-stage1", "mae-stage1", 2]
    interval = formats.interval(row["low"], row["high"])
    assert f"95 % interval {interval}, {formats.probability(row['p'])}" in words
    about = read_json(smoke.results / "runs/fused/evaluated/weights.json")
    parts = zip(about["weights"], about["systems"], strict=True)
    mix = " + ".join(f"{weight:g} × {name}" for weight, name in parts)
    assert f"fused is {mix}." in words


def test_the_work_of_a_job_is_known_without_its_start(numbers):
    assert (numbers["costs"]["milliseconds"] > 0).all()
