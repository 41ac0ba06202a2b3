"""Judging in headless Chromium: each key gives its grade to the passage that is shown."""

import sqlite3
import time

from served import serving

ENTER = "\ue007"
SHOWN = "document.body ? document.body.innerText : ''"


def shown(browser, words, where=SHOWN):
    """Wait until an expression of the page, its text by default, has some words."""
    text = ""
    for _ in range(300):
        text = browser.script(where)
        if words in text:
            return text
        time.sleep(0.1)
    raise AssertionError(f"{words} is not in {text}")


def test_passages_are_judged_by_keys(browser, tmp_path):
    with serving(tmp_path) as (_, port):
        browser.open(f"http://127.0.0.1:{port}/judge")
        shown(browser, "text", "document.activeElement.name || ''")  # some time after loading
        browser.press(*"which", ENTER)
        assert "words" not in shown(browser, "passage 1 of 4")
        for key, number in [*zip("2sb0x1", "232334", strict=True), ("3", "")]:
            browser.press(key)
            shown(browser, f"passage {number} of 4" if number else "All passages are judged")
    with sqlite3.connect(tmp_path / "judged/judgments.sqlite") as database:
        given = database.execute("SELECT grade FROM grades ORDER BY rowid").fetchall()
    assert [grade for (grade,) in given] == [2, None, 0, 1, 3]
