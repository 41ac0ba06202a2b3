"""The report in headless Chromium: on a desk and a phone, light and dark, folded and unfolded."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import synthetic_run
from browser import MISSING, Browser
from synthetic_run import SMALL

from cdmae.collections.store import Collection, write_collection
from cdmae.files import read_json, write_json
from cdmae.report import page
from cdmae.runs import Run, write_run

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

QUERIES, PASSAGES, DEPTH = 40, 60, 20
LONG = "how does one find the passages that a system with a rather long name ranks " * 3
NAME = "a-retriever-with-a-very-long-name-and-without-any-space-in-it"


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


def build(folder, values, notes):
    """The page of a run of every section, with an alarm and long texts."""
    path = synthetic_run.make(folder, values, targets=SMALL)
    about = folder / "trained/cdmae-reranker/about.json"
    write_json(about, read_json(about) | {"notes": notes})
    facts = read_json(path)
    rows = range(QUERIES)
    asked = pd.DataFrame({"query_id": [f"q{row}" for row in rows], "text": LONG})
    qrels = pd.DataFrame([(f"q{row}", f"p{row}", 1) for row in rows])
    qrels.columns = ["query_id", "passage_id", "grade"]
    ids = [f"p{row}" for row in range(PASSAGES)]
    passages = pa.table({"passage_id": ids, "title": [""] * PASSAGES, "text": [LONG] * PASSAGES})
    splits = dict.fromkeys(("train", "dev", "test"))
    collection = Collection(
        passages, dict.fromkeys(splits, asked), dict.fromkeys(splits, qrels), {"from": LONG}
    )
    write_collection(folder / "docs", collection)
    facts["collections"]["pydocs"] = str(folder / "docs")
    facts["runs"] = {}
    for seed, name in enumerate(("bm25", "mae-stage1", "cdmae-stage1", "fused")):
        random = np.random.default_rng(seed)
        ranked = [random.permutation(PASSAGES)[:DEPTH].astype(np.int32) for _ in rows]
        scores = np.arange(DEPTH, 0, -1, dtype=np.float32)
        write_run(folder / f"{name}.parquet", Run.of(ranked, [scores] * QUERIES))
        facts["runs"][name] = str(folder / f"{name}.parquet")
    write_json(path, facts)
    page.build(path, folder / "report")
    return (folder / "report/index.html").as_uri()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The page of six encoders, with long names."""
    values = synthetic_run.objectives(seeds=(42, 43))
    values["systems"][NAME] = values["systems"]["cdmae-stage1"]
    notes = ["its outputs " + 30 * "moved together "]
    return build(tmp_path_factory.mktemp("run"), values, notes)


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    """The page of the default config."""
    notes = ["its scores have collapsed"]
    return build(tmp_path_factory.mktemp("default"), synthetic_run.config(), notes)


def shown(browser, url, width, scheme="light"):
    """Open a page on a screen."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.emulate("setDeviceMetricsOverride", **size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.emulate("setEmulatedMedia", features=features)
    browser.open(url)
    assert browser.script("innerWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_has_no_sideways_scroll_no_script_error_and_no_request(
    browser, url, width, scheme
):
    shown(browser, url, width, scheme)
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.script("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.script("document.querySelectorAll('table.sortable th').forEach(each => each.click())")
    assert browser.errors() == []
    assert browser.script("performance.getEntriesByType('resource').length") == 0
    background = browser.script("getComputedStyle(document.body).backgroundColor")
    ink = browser.script("getComputedStyle(document.querySelector('svg text')).fill")
    [paper, text] = [sum(map(int, re.findall(r"\d+", each)[:3])) for each in (background, ink)]
    assert (paper < 200 < 450 < text) if scheme == "dark" else (text < 350 < 700 < paper)
    sections = browser.script(
        "[...document.querySelectorAll('main > section')].map(each => each.id)"
    )
    assert sections == [
        "alarms", "use", "differences", "measures", "method", "training", "queries", "setup",
    ]  # fmt: skip


def test_the_default_is_short_and_its_first_screen_answers_three_questions(browser, default):
    shown(browser, default, 1200)
    assert browser.script("document.documentElement.scrollHeight") <= 5000
    assert 3 < browser.script("document.querySelectorAll('svg').length") <= 12
    bottoms = browser.script(
        "[...document.querySelectorAll('.alarm, .verdict')]"
        ".map(each => each.getBoundingClientRect().bottom)"
    )
    assert len(bottoms) >= 3 and max(bottoms) < 900


def test_a_heading_sorts_its_table_by_numbers(browser, default):
    shown(browser, default, 1200)
    browser.script("document.querySelectorAll('#use th')[2].click()")
    column = "[...document.querySelectorAll('#use tbody tr')].map(row => row.cells[2].textContent)"
    values = [float(text.split()[0]) for text in browser.script(column)]
    assert values == sorted(values, reverse=True) and len(set(values)) > 3
    browser.script("document.querySelectorAll('#use th')[2].click()")
    assert [float(text.split()[0]) for text in browser.script(column)] == values[::-1]
