"""What a run does at its beginning and prints at its end.

Snakemake logs its own last lines after its hooks have run. The lines of this module are therefore
printed when the process ends.
"""

from __future__ import annotations

import atexit
import difflib
import fcntl
import filecmp
import html
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.io import expand, get_wildcard_constraints, strip_wildcard_constraints
from snakemake.logging import get_event
from snakemake_interface_logger_plugins.common import LogEvent

from cdmae.log import say
from cdmae.terminal import printable
from workflow import reasons
from workflow.facts import TABLES

if TYPE_CHECKING:
    from snakemake.rules import Rule
    from snakemake.workflow import Workflow

COMMANDS = ("new", "plan", "search", "serve", "importance", "export", "check", "test")  # of ./run
QUESTION = re.compile(r'<p class="question">(.*?)</p>', re.DOTALL)
VERDICT = re.compile(r'<h2 class="verdict">(.*?)</h2>', re.DOTALL)
# Snakemake's advice after a dry run, which users do not need because each job has its reasons
ADVICE = ("Some jobs were triggered by provenance", "Rules with provenance triggered jobs:")
UNKNOWN = re.compile(r"No rule to produce (\S+) \(if you use")
CHANGED = "Params have changed since last execution: "  # printed before the old and the new text
LOG = re.compile(r"^ +log: (.+) \(check log file\(s\) for error details\)$", re.MULTILINE)

_locks: list[TextIO] = []  # the operating system releases a lock when the process ends


def lock(results: str) -> None:
    """Lock the results folder for this process; end the process if another run holds the lock.

    Snakemake's own lock would outlive a killed process, and is turned off.
    """
    path = Path(results, ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        other = printable(file.read().strip())
        sys.exit(f"cdmae: another run ({other}) is working on {results}; wait for it")
    except OSError as error:  # a network file system without locks
        say(f"{results} cannot be locked ({error.strerror}): start one run at a time")
    file.truncate(0)
    file.write(f"process {os.getpid()} on {os.uname().nodename}")
    file.flush()
    _locks.append(file)


def delete_kept(results: str) -> None:
    """Delete what jobs have kept in case they end badly, where their outputs exist.

    Snakemake deletes the output of a job that fails, even if its work was done: a signal, a time
    limit or a full disk may come at the last moment. The states of trainings and finished pieces of
    vectors, texts and scores therefore stay until Snakemake has recorded the outputs.
    """
    for about in Path(results, "state").glob("*/*/*/about.json"):
        name = about.parents[1].name  # state/{rule}/{name}/{hash}/about.json
        made = [Path(results, folder, name, "about.json") for folder in ("encoders", "trained")]
        if any(path.exists() and filecmp.cmp(about, path, shallow=False) for path in made):
            shutil.rmtree(about.parent, ignore_errors=True)
    for pieces in Path(results).rglob(".*.pieces"):
        if pieces.with_name(pieces.name[1:].removesuffix(".pieces")).exists():
            shutil.rmtree(pieces, ignore_errors=True)


def print_failures(log: str) -> None:
    """Print the reason for each failed job that Snakemake's log names, the first failure last."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    for path in reversed(dict.fromkeys(LOG.findall(text))):
        said = Path(path).read_text(errors="replace").strip() if Path(path).is_file() else ""
        sentences = re.findall(r"^cdmae: .*", said, re.MULTILINE)
        last = said.split("\n")[-1]
        reason = sentences[-1] if sentences else last
        if not sentences and "Traceback" not in said:
            reason = f"it was ended from outside, perhaps for its memory; its last line is: {last}"
        _print_last(printable(f"{path}: {reason}"))


def print_results(results: str, targets: Iterable[str]) -> None:
    """Print the paths of the requested exhibits, or the report's path and answers."""
    exhibits = [name for name in TABLES if name in targets]
    for name in exhibits:
        _print_last(f"{name}: {results}/tables/{name}.md")
    page = Path(results, "report/index.html")
    if exhibits or not page.exists():
        return
    _print_last(f"report: {page}")
    for words in reversed(answers(page)):
        _print_last(words)


def answers(page: Path) -> list[str]:
    """Extract a report's questions with their answers, one line each; omit unanswered ones."""
    text = page.read_text(encoding="utf-8")
    lines = []
    for question, verdict in zip(QUESTION.findall(text), VERDICT.findall(text), strict=False):
        plain = html.unescape(re.sub("<[^>]+>", "", f"{question} {verdict}"))
        lines.append(printable(" ".join(plain.split())))
    return lines


def suggestion(target: str, rules: Iterable[Rule]) -> str:
    """Say that no rule makes a target, and name the nearest rule, command or result."""
    known = [*COMMANDS]
    for rule in rules:
        if not rule.has_wildcards():
            known.append(rule.name)
        for pattern in rule.output:
            names = {
                name: constraint.pattern.split("|")
                for name, constraint in get_wildcard_constraints(pattern).items()
            }
            known += expand(strip_wildcard_constraints(pattern), **names)
    near = difflib.get_close_matches(target, known, n=1)
    remedy = f"did you mean {near[0]}?" if near else "snakemake -n lists what it makes"
    return printable(f"{target} is not made by this config; {remedy}")


class Listener:
    """A filter of Snakemake's log that adds to its records and drops some.

    It names the settings and modules that changed in the reasons for jobs, and the nearest target
    if a target is unknown. It prints the results when there is nothing to do, in which case
    Snakemake runs no hook.
    """

    def __init__(self, workflow: Workflow, results: str) -> None:
        """Take Snakemake's workflow, and the folder of the results."""
        self.workflow = workflow
        self.results = results

    def __call__(self, record: logging.LogRecord) -> bool:
        """Return whether Snakemake prints a record."""
        if record.msg == NOTHING_TO_BE_DONE_MSG and not self.workflow.dryrun:
            delete_kept(self.results)
            print_results(self.results, self.workflow.dag_settings.targets)
        unknown = UNKNOWN.search(str(record.msg))
        if unknown:
            _print_last(f"cdmae: {suggestion(unknown[1], self.workflow.rules)}")
        if get_event(record) == LogEvent.JOB_INFO:
            jobs = (job for job in self.workflow.dag.jobs if job.jobid == record.jobid)
            change = self.workflow.dag.reason(next(jobs)).params_changed
            if change:
                words = reasons.words(change.only_old, change.only_new)
                record.reason = record.reason.replace(f"{CHANGED}{change}", f"{CHANGED}{words}")
        return not str(record.msg).startswith(ADVICE)


def _print_last(line: str) -> None:
    """Print a line at the end of the process, before the lines of earlier calls."""
    atexit.register(print, line, file=sys.stderr)
