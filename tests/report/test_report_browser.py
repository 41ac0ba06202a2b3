"""The report in headless Chromium: on a desk and a phone, light and dark, everything unfolded."""

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


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The page of a run of every section, with an alarm, long names and long texts."""
    folder = tmp_path_factory.mktemp("run")
    values = synthetic_run.objectives(seeds=(42, 43))
    values["systems"][NAME] = values["systems"]["cdmae-stage1"]
    path = synthetic_run.make(folder, values, targets=SMALL)
    about = folder / "trained/cdmae-reranker/about.json"
    write_json(about, read_json(about) | {"notes": ["its outputs " + 30 * "moved together "]})
    facts = read_json(path)
    rows = range(QUERIES)
    asked = pd.DataFrame({"query_id": [f"q{row}" for row in rows], "text": LONG})
    qrels = pd.DataFrame([(f"q{row}", f"p{row}", 1) for row in rows])
    qrels.columns = ["query_id", "passage_id", "grade"]
    ids = [f"p{row}" for row in range(PASSAGES)]
    passages = pa.table({"passage_id": ids, "title": [""] * PASSAGES, "text": [LONG] * PASSAGES})
    splits = dict.fromkeys(("train", "dev", "test"))
    collection = Collection(
        passages, dict.fromkeys(splits, asked), dict.fromkeys(splits, qrels), {}
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_has_no_sideways_scroll_and_no_script_error(browser, url, width, scheme):
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.emulate("setDeviceMetricsOverride", **size)
    browser.emulate(
        "setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    browser.open(url)
    assert browser.script("innerWidth") == width
    browser.script("document.querySelectorAll('details').forEach(each => each.open = true)")
    browser.script("document.querySelectorAll('#asked button')[1].click()")
    assert browser.script("document.documentElement.scrollWidth") <= width
    assert browser.errors() == []
    dark = browser.script("getComputedStyle(document.body).backgroundColor")
    browser.script("document.querySelector('#theme').click()")
    assert browser.script("getComputedStyle(document.body).backgroundColor") != dark
    browser.script("localStorage.clear()")
    assert browser.script("document.querySelectorAll('#passages li').length") > 0
    sections = browser.script(
        "[...document.querySelectorAll('main > section')].map(each => each.id)"
    )
    assert sections[:3] == ["alarms", "choice", "answer"] and "explorer" in sections
