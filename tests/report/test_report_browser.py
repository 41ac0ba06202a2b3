"""The report in headless Chromium, on a desk and on a phone."""

import time

import pytest
import synthetic_run

from cdmae.report import page

NAME = "a-retriever-with-a-very-long-name-and-without-any-space-in-it"
WIDTH = "Math.max(innerWidth, document.documentElement.scrollWidth)"
COLUMN = "[...document.querySelectorAll('#use tbody tr')].map(row => row.cells[2].textContent)"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The page of a run with long texts and a long name."""
    folder = tmp_path_factory.mktemp("run")
    values = synthetic_run.config(seed=[42, 43])
    values["systems"][NAME] = values["systems"]["cdmae-stage1"]
    facts = synthetic_run.make(folder, values, text="a query that is rather long " * 9)
    page.write(facts, folder / "report")
    return (folder / "report/index.html").as_uri()


@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_fits_its_screen_loads_nothing_and_sorts_its_tables(browser, url, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.emulate("setDeviceMetricsOverride", **size)
    browser.errors()  # forgets those of other tests' pages
    browser.open(url)
    browser.script("document.querySelectorAll('details').forEach(each => each.open = true)")
    for _ in range(300):  # the layout of an emulated screen may come after the page is loaded
        if browser.script(WIDTH) <= width:
            break
        time.sleep(0.1)
    assert browser.script(WIDTH) <= width
    assert browser.script("performance.getEntriesByType('resource').length") == 0
    for down in (True, False):
        browser.script("document.querySelectorAll('#use th')[2].click()")
        values = [float(text.split()[0]) for text in browser.script(COLUMN)]
        assert values == sorted(values, reverse=down) and len(set(values)) > 3
    assert browser.errors() == []
