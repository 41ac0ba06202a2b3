"""The report in headless Chromium: on a desk and a phone, light and dark, folded and unfolded."""

import re
import time

import pytest
import synthetic_run

from cdmae.files import read_json, write_json
from cdmae.report import page

LONG = "how does one find the passages that a system with a rather long name ranks " * 3
NAME = "a-retriever-with-a-very-long-name-and-without-any-space-in-it"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The page of a run of every section, with an alarm, long texts and a long name."""
    folder = tmp_path_factory.mktemp("run")
    values = synthetic_run.objectives(seeds=(42, 43))
    values["systems"][NAME] = values["systems"]["cdmae-stage1"]
    facts = synthetic_run.make(folder, values, text=LONG)
    about = folder / "trained/cdmae-reranker/about.json"
    notes = ["its outputs " + 30 * "moved together "]
    write_json(about, read_json(about) | {"notes": notes})
    page.write(facts, folder / "report")
    return (folder / "report/index.html").as_uri()


def shown(browser, url, width, scheme="light"):
    """Open a page on a screen."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.emulate("setDeviceMetricsOverride", **size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.emulate("setEmulatedMedia", features=features)
    browser.errors()  # forgets those of other tests' pages
    browser.open(url)
    for _ in range(300):  # the layout of an emulated screen may come after the page is loaded
        if browser.script("Math.max(innerWidth, document.documentElement.scrollWidth)") <= width:
            return
        time.sleep(0.1)
    raise AssertionError("the page is wider than the screen")


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


def test_the_page_is_short_and_its_first_screen_answers_three_questions(browser, url):
    shown(browser, url, 1200)
    assert browser.script("document.documentElement.scrollHeight") <= 4000
    assert 3 < browser.script("document.querySelectorAll('svg').length") <= 12
    bottoms = browser.script(
        "[...document.querySelectorAll('.alarm, .verdict')]"
        ".map(each => each.getBoundingClientRect().bottom)"
    )
    assert len(bottoms) >= 3 and max(bottoms) < 900


def test_the_page_fits_on_paper(browser, url):
    shown(browser, url, 720)
    browser.emulate("setEmulatedMedia", media="print")
    assert browser.script("document.documentElement.scrollWidth") <= 720
    browser.emulate("setEmulatedMedia", media="")


def test_a_heading_sorts_its_table_by_numbers_or_texts(browser, url):
    shown(browser, url, 1200)
    browser.script("document.querySelectorAll('#use th')[2].click()")
    column = "[...document.querySelectorAll('#use tbody tr')].map(row => row.cells[2].textContent)"
    values = [float(text.split()[0]) for text in browser.script(column)]
    assert values == sorted(values, reverse=True) and len(set(values)) > 3
    browser.script("document.querySelectorAll('#use th')[2].click()")
    assert [float(text.split()[0]) for text in browser.script(column)] == values[::-1]
    names = column.replace("cells[2]", "cells[0]")
    browser.script("document.querySelector('#use th').click()")
    up = browser.script(names)
    assert up == browser.script(f"{names}.sort((a, b) => a.localeCompare(b))")
    pressed = "new KeyboardEvent('keydown', {key: ' ', cancelable: true})"
    browser.script(f"document.querySelector('#use th').dispatchEvent({pressed})")
    assert browser.script(names) == up[::-1]
