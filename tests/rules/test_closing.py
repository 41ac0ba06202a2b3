"""The last lines of a run."""

import logging

import pytest

from workflow import closing

PAGE = """<p class="question">Did masking by importance help?</p>
<h2 class="verdict">
Not measurably: <b>+1.6&nbsp;points</b> is within the noise.
</h2>"""


@pytest.mark.parametrize(
    ("page", "targets", "lines"),
    [
        (PAGE, [], [
            "Did masking by importance help? Not measurably: +1.6 points is within the noise.",
            "report: {results}/report/index.html",
        ]),
        (PAGE.replace("Did masking by importance help", "What") + PAGE, [], [
            "What? Not measurably: +1.6 points is within the noise.",
            "Did masking by importance help? Not measurably: +1.6 points is within the noise.",
            "report: {results}/report/index.html",
        ]),
        ("<h1>No systems</h1>", [], ["report: {results}/report/index.html"]),
        (PAGE, ["table_main"], ["table_main: {results}/tables/table_main.md"]),
        (None, [], []),
    ],
    ids=["a report", "two answers", "without an answer", "a table", "neither"],
)  # fmt: skip
def test_a_run_ends_with_the_answer_and_its_path(tmp_path, monkeypatch, page, targets, lines):
    last = []
    monkeypatch.setattr(closing, "print_last", lambda line: last.insert(0, line))
    (tmp_path / "report").mkdir()
    if page is not None:
        (tmp_path / "report/index.html").write_text(page)
    closing.print_results(str(tmp_path), targets)
    assert last == [line.format(results=tmp_path) for line in lines]


def test_the_advice_on_triggers_is_dropped_and_nothing_else():
    advice = ["Some jobs were triggered by provenance information, see", "This was a dry-run"]
    records = [logging.makeLogRecord({"msg": words}) for words in advice]
    assert [closing.keeps(record) for record in records] == [False, True]
