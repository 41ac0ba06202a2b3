"""The pages in headless Chromium: keyboard, labels, 390 pixels, dark mode, no JavaScript."""

import sqlite3
import time

import pytest
from served import HOSTILE, TEXTS, serving

TAB, ENTER, SPACE = "\ue004", "\ue007", " "
ASKED = "?q=list&system=words&system=both"
FOCUSED = "document.activeElement.name || ''"  # a field is focused some time after loading


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The URL of a server, and its folder."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder) as (_, port):
        yield f"http://127.0.0.1:{port}/", folder


def shown(browser, words, where="document.body ? document.body.innerText : ''"):
    """Wait until an expression of the page, its text by default, has some words."""
    text = ""
    for _ in range(300):
        text = browser.script(where)
        if words in text:
            return text
        time.sleep(0.1)
    raise AssertionError(f"{words} is not in {text}")


def test_a_query_is_asked_by_keyboard_without_javascript(browser, served):
    browser.emulate("setScriptExecutionDisabled", value=True)
    try:
        browser.open(served[0])
        shown(browser, "q", FOCUSED)
        browser.press(*"list", TAB, TAB, TAB, TAB, SPACE)  # the button, words, vectors, both
        browser.press(ENTER)
        text = shown(browser, "The best 3 of 4 passages of docs")
        assert HOSTILE in text
        passage = "document.querySelector('li:nth-of-type(3) .passage').innerText"
        assert browser.script(passage) == TEXTS[2], "with its lines and spaces"
        heads = [browser.text(f"section:nth-of-type({n}) h2").split()[0] for n in (1, 2)]
        assert heads == ["words", "both"]
    finally:
        browser.emulate("setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("page", ["", ASKED, "judge", "?q=a&system=x"])
def test_pages_fit_a_phone_name_their_parts_and_follow_dark_mode(browser, served, page):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.emulate("setDeviceMetricsOverride", **size)
    grounds = set()
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.emulate("setEmulatedMedia", features=[feature])
        browser.open(served[0] + page)
        shown(browser, "390", "String(document.documentElement.scrollWidth)")  # after the layout
        grounds.add(browser.script("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    for element in browser.find("input:not([type=hidden]), select, button, a, progress, fieldset"):
        assert browser.label(element)
    browser.press(TAB)
    assert browser.script("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_passages_are_judged_by_keys(browser, served):
    url, folder = served
    browser.open(url + "judge")
    shown(browser, "text", FOCUSED)
    browser.press(*"which", ENTER)
    texts = shown(browser, "passage 1 of 4")
    for key, number in [*zip("2sb0x1", "232334", strict=True), ("3", "")]:
        browser.press(key)
        texts += shown(browser, f"passage {number} of 4" if number else "All passages are judged")
    assert "words" not in texts and all(text in texts for text in TEXTS)
    with sqlite3.connect(folder / "judged/judgments.sqlite") as database:
        given = database.execute("SELECT grade FROM grades ORDER BY rowid").fetchall()
    assert [grade for (grade,) in given] == [2, None, 0, 1, 3]
