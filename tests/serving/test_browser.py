"""The pages in headless Chromium: keyboard, labels, 390 pixels, dark mode, no JavaScript."""

import json
import time

import pytest
from browser import MISSING, Browser
from served import HOSTILE, serving

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TAB, ENTER, SPACE = "\ue004", "\ue007", " "
ASKED = "?q=list&system=words&system=both"


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(folder):
    with serving(folder) as (_, port):
        yield f"http://127.0.0.1:{port}/"


def shown(browser, words):
    """Wait until the page has some words."""
    text = ""
    for _ in range(100):
        text = browser.script("document.body ? document.body.innerText : ''")
        if words in text:
            return text
        time.sleep(0.1)
    raise AssertionError(f"{words} is not in {text}")


def test_a_query_is_asked_by_keyboard_without_javascript(browser, url):
    browser.emulate("setScriptExecutionDisabled", value=True)
    try:
        browser.open(url)
        browser.press(*"list", TAB, TAB, TAB, TAB, SPACE)  # the button, words, vectors, both
        browser.press(ENTER)
        text = shown(browser, "The best 3 of 4 passages of docs")
        assert HOSTILE in text and "A cut sentence" in text
        assert [browser.text(f"section:nth-of-type({n}) h2").split()[0] for n in (1, 2)] == [
            "words",
            "both",
        ]
    finally:
        browser.emulate("setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("page", ["", ASKED, "docs", "judge", "?q=a&system=x"])
def test_pages_fit_a_phone_name_their_parts_and_follow_dark_mode(browser, url, page):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.emulate("setDeviceMetricsOverride", **size)
    grounds = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.emulate("setEmulatedMedia", features=[feature])
        browser.open(url + page)
        assert browser.script("document.documentElement.scrollWidth") == 390
        grounds.append(browser.script("getComputedStyle(document.body).backgroundColor"))
    assert len(set(grounds)) == 2
    for element in browser.find("input:not([type=hidden]), select, button, a, progress, fieldset"):
        assert browser.label(element)
    assert browser.script("document.documentElement.lang") == "en"
    assert len(browser.find("h1")) == len(browser.find("main")) == 1
    browser.press(TAB)
    ring = "getComputedStyle(document.activeElement).outlineStyle"
    sibling = (
        "getComputedStyle(document.activeElement.nextElementSibling||document.body).outlineStyle"
    )
    assert "solid" in (browser.script(ring), browser.script(sibling))


def test_passages_are_judged_by_keys(browser, url, folder):
    browser.open(url + "judge")
    browser.press(*"which", ENTER)
    assert "words" not in shown(browser, "passage 1 of 4")
    for key, number in [*zip("2sb0x1", "232334", strict=True), ("3", "")]:
        browser.press(key)
        shown(browser, f"passage {number} of 4" if number else "All passages are judged")
    log = (folder / "judged/judgments.jsonl").read_text().splitlines()
    assert [json.loads(line)["grade"] for line in log] == [2, None, 0, 1, 3]
    assert len((folder / "judged/qrels/test.tsv").read_text().splitlines()) == 1 + 4
