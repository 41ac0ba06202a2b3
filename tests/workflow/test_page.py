"""The page of a real run: its order is the config's, and its sentences say what its tables hold."""

from __future__ import annotations

import csv
import html
import re

import pytest

from cdmae import formats
from cdmae.config import systems
from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.config.seeds import first
from cdmae.files import read_json

pytestmark = pytest.mark.workflow

OVERVIEW = "overview"
MEASURED = ("answer", OVERVIEW, "results-*", "zero-shot*", "stages-*", "changes*", "combined-*")


@pytest.fixture(scope="module")
def config(smoke):
    """The config of the smoke run."""
    files = smoke.folder / "config"
    return load(gather(files / "config.yaml", [files / "smoke.yaml"]))


@pytest.fixture(scope="module")
def table(smoke):
    """A function that reads a table of the report: a row of texts by the first cell."""

    def read(name):
        with open(
            smoke.results / f"report/tables/{name}.csv", encoding="utf-8", newline=""
        ) as file:
            rows = list(csv.DictReader(file))
        return {row[next(iter(row))]: row for row in rows}

    return read


@pytest.fixture(scope="module")
def first_screen(smoke):
    """What a reader reads before the first heading."""
    page = (smoke.results / "report/index.html").read_text(encoding="utf-8")
    section = re.search(r'<section id="answer">(.*?)</section>', page, re.DOTALL)[1]
    prose = re.sub(r"<figure.*?</figure>", " ", section, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", prose)))


def said(row, column, form):
    """A number of a table as a sentence writes it; tables hold points, sentences are formed of
    shares.
    """
    return form(float(row[column]) / 100).replace("\N{NO-BREAK SPACE}", " ")


def p_of(row):
    return formats.probability(float(row["p, Holm"]))


def test_systems_and_collections_stand_in_the_order_of_the_config(smoke, config, table):
    assert list(config.systems) != sorted(config.systems), "a config in which the order shows"
    overview = table(OVERVIEW)
    assert list(overview) == first(config.systems) == list(table("systems"))
    assert list(table("collections")) == list(config.collections)
    assert list(table("encoders")) == first(config.encoders)
    heads = list(next(iter(overview.values())))[1:]
    columns = [head for head in heads if not head.endswith(("note", "seeds"))]
    for measure in ("MRR@10", "nDCG@10"):
        of_measure = [column.partition(",")[0] for column in columns if column.endswith(measure)]
        targets = [f"{collection} {split}" for collection, split in systems.targets(config)]
        places = [
            next(at for at, target in enumerate(targets) if target.startswith(name))
            for name in of_measure
        ]
        assert places and places == sorted(places)
    known = read_json(smoke.results / "facts.json")["config"]
    for section, entries in config.values().items():
        if isinstance(entries, dict):
            assert list(known[section]) == list(entries), section


def test_every_table_names_its_measures(smoke, config):
    names = "|".join(re.escape(formats.measure_name(name)) for name in config.evaluation.measures)
    tables = [path for form in MEASURED for path in smoke.results.glob(f"report/tables/{form}.md")]
    assert len(tables) > 6
    assert [
        path.name for path in tables if not re.search(names, path.read_text(encoding="utf-8"))
    ] == []
    heads = next(
        csv.reader((smoke.results / f"report/tables/{OVERVIEW}.csv").open(encoding="utf-8"))
    )
    assert all(re.search(names, head) for head in heads[1:])
    zero_shot = {head.rpartition(" ")[2] for head in heads if "zero-shot" in head}
    assert {"MRR@10", "nDCG@10"} <= zero_shot


def test_the_first_screen_says_what_its_table_holds_of_one_baseline(first_screen, table, config):
    rows = table("answer")
    row = rows["the mean of all, MRR@10"]
    compared = ("cdmae-stage1", config.evaluation.baseline)
    a, b = (said(row, name, formats.points) for name in compared)
    sets = "pydocs dev, pydocs test and scikit-learn"
    assert f"they reach MRR@10 {a} and {b} on average over {sets}" in first_screen
    assert f"By how much{said(row, 'difference', formats.signed)} points" in first_screen
    assert f"How sure{p_of(row)} over" in first_screen and "and 2 seeds" in first_screen
    low, high = map(float, row["interval, Holm"].split(" to "))
    assert f"interval {formats.interval(low / 100, high / 100)}" in first_screen
    assert f"Every comparison above is with {config.evaluation.baseline}." in first_screen
    note = table("results-pydocs-dev")["cdmae-stage1"]["MRR@10, note"]
    assert note.endswith(p_of(rows["pydocs dev, MRR@10"])) and note.startswith(
        f"against {config.evaluation.baseline}: "
    ), "one correction"


def test_other_sentences_of_the_first_screen_have_their_rows_in_tables(first_screen, table):
    sentence = r"(\S+) puts the best passages of (\S+) in another order: (\S+) points \((.*?)\)"
    reranked = re.findall(sentence, first_screen)
    assert reranked
    for name, reordered, difference, p in reranked:
        row = table(f"combined-{name}")["pydocs dev, MRR@10"]
        assert reordered in row
        assert (difference, p) == (said(row, "difference", formats.signed), p_of(row))


def test_the_weights_of_a_fusion_are_the_ones_that_were_chosen(smoke, table):
    about = read_json(smoke.results / "runs/fused/evaluated/weights.json")
    parts = zip(about["weights"], about["systems"], strict=True)
    assert table("fusions")["fused"]["weights"] == ", ".join(
        f"{weight:g} × {name}" for weight, name in parts
    )
