"""What a run prints last, and the reasons that it names."""

import logging
from types import SimpleNamespace

import pytest
from snakemake.jobs import Reason
from snakemake.persistence import ParamsChange
from snakemake_interface_logger_plugins.common import LogEvent

from workflow import hooks, reasons

PAGE = """<p class="question">Did masking by importance help?</p>
<h2 class="verdict">
Not measurably: <b>+1.6&nbsp;points</b> is within the noise.
</h2>"""


@pytest.fixture
def last(monkeypatch):
    """The lines that are printed at the end of the process, in their order."""
    lines = []
    monkeypatch.setattr(hooks, "_print_last", lambda line: lines.insert(0, line))
    return lines


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
def test_a_run_ends_with_the_answer_and_its_path(tmp_path, last, page, targets, lines):
    (tmp_path / "report").mkdir()
    if page is not None:
        (tmp_path / "report/index.html").write_text(page)
    hooks.print_results(str(tmp_path), targets)
    assert last == [line.format(results=tmp_path) for line in lines]


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            "cdmae has 5 steps: few\ncdmae: a try\ncdmae: diverged\nE0101 failed: a\n",
            "cdmae: diverged",
        ),
        ("step 3\nTraceback\nValueError: no: 3\n", "ValueError: no: 3"),
        (
            "step 3: \x1b[31mred\n",
            "it was ended from outside, perhaps for its memory; its last line is: step 3: \\x1b[31mred",
        ),
    ],
)
def test_a_failed_job_is_named_with_the_reason_in_its_log(tmp_path, last, log, words):
    (tmp_path / "a b.log").write_text(log)
    said = tmp_path / "snakemake.log"
    line = f"    log: {tmp_path}/a b.log (check log file(s) for error details)\n"
    said.write_text(f"Error in rule a:\n{line}\nError in rule a, again:\n{line}")
    hooks.print_failures(str(said))
    assert last == [f"{tmp_path}/a b.log: {words}"]


def change(before, now):
    """As Snakemake compares what it has recorded of two mappings."""
    return ParamsChange(only_old={repr(before)}, only_new={repr(now)}, files={"a"})


def test_a_change_is_named_by_its_keys():
    before = {
        "settings": {"alpha": 4.0, "margin": 0.1, "group": 4, "most": float("inf")},
        "seed": 42,
    }
    now = {"settings": {"alpha": 0.5, "depth": 9, "group": 4, "most": float("inf")}, "seed": 42}
    assert reasons.words([repr(before)], [repr(now)]) == (
        "alpha was 4.0 and is 0.5; margin was 0.1 and is not set; depth is 9 and was not set"
    )
    modules = [[repr({"cdmae.files": "1", "workflow/scripts/fuse.py": each})] for each in "12"]
    assert reasons.words(*modules) == "code of workflow/scripts/fuse.py"
    many = [[repr({f"key{number}": each for number in range(7)})] for each in "12"]
    assert reasons.words(*many).endswith("; 2 more")
    assert "another version" in reasons.words(["'alpha: 4.0'"], [repr(now)])


def test_the_reason_that_snakemake_logs_names_the_change():
    """Snakemake writes both sets after these words; nothing is changed in other records."""
    reason = Reason()
    reason.params_changed = change({"alpha": 1}, {"alpha": 2})
    job = SimpleNamespace(jobid=3)
    dag = SimpleNamespace(jobs=[job], reason=lambda _: reason)
    listener = hooks.Listener(SimpleNamespace(dag=dag, dryrun=True), "results")
    record = logging.makeLogRecord({"event": LogEvent.JOB_INFO, "jobid": 3, "reason": str(reason)})
    assert listener(record)
    assert record.reason.endswith(f"{hooks.CHANGED}alpha was 1 and is 2")
    advice = ["Some jobs were triggered by provenance information, see", "This was a dry-run"]
    records = [logging.makeLogRecord({"msg": words}) for words in advice]
    assert [listener(each) for each in records] == [False, True]
