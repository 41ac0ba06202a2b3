"""What a run does at its beginning and end, and what it prints.

Snakemake prints a block of many lines for each job, which the profiles hide with `quiet`. Instead,
`Terminal` prints a table of the rules with the reasons for their jobs, and a line per job.
"""

from __future__ import annotations

import atexit
import difflib
import fcntl
import html
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.io import expand, get_wildcard_constraints, strip_wildcard_constraints
from snakemake.logging import get_event
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from cdmae.log import say
from cdmae.report.sources import TABLES
from cdmae.terminal import printable
from workflow import reasons

if TYPE_CHECKING:
    from snakemake.jobs import Job
    from snakemake.rules import Rule
    from snakemake.workflow import Workflow

COMMANDS = ("new", "plan", "search", "serve", "importance", "export", "check", "test")  # of ./run
QUESTION = re.compile(r'<p class="question">(.*?)</p>', re.DOTALL)
VERDICT = re.compile(r'<h2 class="verdict">(.*?)</h2>', re.DOTALL)
UNKNOWN = re.compile(r"No rule to produce (\S+) \(if you use")
TRAININGS = {"encoders": "pretrain", "trained": "train"}  # the folders of results and of states
LONGEST = 160  # characters of a line; the note of a cut makes it up to 200
# what Snakemake says about every run, or what the table of the rules says better
HIDDEN = (
    "Conda environments: ignored",
    "Execute ",
    "Reasons:",
    "Rules with provenance triggered jobs:",
    "Select jobs to execute",
    "Singularity containers: ignored",
    "Some jobs were triggered by provenance",
    "Using shell:",
)

_locks: list[TextIO] = []  # the operating system releases a lock when the process ends


def lock(results: str) -> None:
    """Lock the results folder for this process; end the process if another run holds the lock.

    Snakemake's own lock would outlive a killed process, and is turned off.
    """
    path = Path(results, ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        words = "expected a folder that can be written: set another as `results`"
        sys.exit(f"cdmae: results is {results} ({error.strerror}); {words}")
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


def delete_kept(outputs: Iterable[str]) -> None:
    """Delete the states of the trainings, and the pieces, of a run's `outputs`.

    Snakemake deletes the output of a job that fails, even if its work was done: a signal, a time
    limit or a full disk may come at the last moment. States and pieces stay until then. The pieces
    of vectors, which are links to them, stay: when a collection is added, the others are not
    encoded again.
    """
    for output in map(Path, outputs):
        if not output.exists():  # of a job behind --until
            continue
        folder, name = output.parent, output.name
        if folder.name in TRAININGS:
            states = folder.with_name("state") / TRAININGS[folder.name] / name
            for about in states.glob("*/about.json"):  # with other settings, none is finished
                shutil.rmtree(about.parent, ignore_errors=True)
        if folder.parent.name != "vectors":
            shutil.rmtree(output.with_name(f".{name}.pieces"), ignore_errors=True)


def answers(page: Path) -> list[str]:
    """Extract a report's questions with their answers, one line each; omit unanswered ones."""
    text = page.read_text(encoding="utf-8")
    lines = []
    for question, verdict in zip(QUESTION.findall(text), VERDICT.findall(text), strict=False):
        plain = html.unescape(re.sub("<[^>]+>", "", f"{question} {verdict}"))
        lines.append(" ".join(plain.split()))
    return lines


def suggestion(targets: Iterable[str], rules: Iterable[Rule]) -> str:
    """Say which target no rule makes, and name the nearest rule, command or result."""
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
    unknown = sorted(set(targets) - set(known))
    if not unknown:  # a command behind an option
        name = min(targets)
        return f"{name} is a command of ./run; expected it first: ./run {name} ..."
    near = {target: difflib.get_close_matches(target, known, n=1) for target in unknown}
    for target, names in near.items():  # of `serch TEXT`, both are unknown
        if names:
            return f"{target} is not made by this config; did you mean {names[0]}?"
    return f"{unknown[0]} is not made by this config; snakemake -n lists what it makes"


class Terminal:
    """A filter of Snakemake's log, which adds what a run prints instead of blocks."""

    def __init__(self, workflow: Workflow, results: str) -> None:
        """Print for Snakemake's workflow; `results` is the folder of its results."""
        self.workflow = workflow
        self.results = results
        self.jobs: list[Job] = []  # of the run, once they are known
        self.started: dict[int, int] = {}  # the number of a job, also when it is tried again
        # logs, and what Snakemake's executor says, by the number of the job
        self.failed: dict[int, tuple[str, str]] = {}

    def __call__(self, record: logging.LogRecord) -> bool:
        """Return whether Snakemake prints a record, perhaps with other words."""
        event = get_event(record)
        quiet = set(self.workflow.output_settings.quiet or ())
        is_brief = {Quietness.RULES, Quietness.PROGRESS} <= quiet
        if event == LogEvent.JOB_ERROR and record.log:
            said = " ".join((record.rule_msg or "").split())
            self.failed[record.jobid] = record.log[0], said
            if is_brief:
                words = f"{record.rule_name} has failed: {record.log[0]} {said}"
                _say(record, textwrap.shorten(printable(words), LONGEST, placeholder=" ..."))
        elif event == LogEvent.JOB_FINISHED:
            self.failed.pop(record.job_id, None)  # an earlier attempt
        elif event == LogEvent.RUN_INFO:
            if self.jobs and is_brief:
                return False  # the second table of a dry run
            if not self.workflow.dryrun:
                lock(self.results)
            self.jobs = [job for job in self.workflow.dag.needrun_jobs() if job.output]
            if is_brief:
                _say(record, self.table())
        elif event == LogEvent.JOB_INFO and is_brief:
            if self.workflow.dryrun or not record.output:
                return False
            number = self.started.setdefault(record.jobid, len(self.started) + 1)
            name = " ".join([record.rule_name, *record.wildcards.values()])
            _say(record, printable(f"job {number} of {len(self.jobs)}: {name}", LONGEST))
        elif event == LogEvent.JOB_INFO:
            job = next(job for job in self.workflow.dag.jobs if job.jobid == record.jobid)
            record.reason = reasons.of_job(self.workflow.dag.reason(job))
        elif record.msg == NOTHING_TO_BE_DONE_MSG and not self.workflow.dryrun:
            self.answer()  # Snakemake runs no hook
        for target in UNKNOWN.findall(str(record.msg)):
            targets = {target, *map(str, self.workflow.dag_settings.targets)}
            _print_last(f"cdmae: {suggestion(targets, self.workflow.rules)}")
        return not (is_brief and str(record.msg).startswith(HIDDEN))

    def table(self) -> str:
        """List the rules in their order, with the number of their jobs and the reasons for them."""
        lines = ["rule            jobs   because of"]
        for rule in self.workflow.rules:
            own = [job for job in self.jobs if job.rule == rule]
            why = dict.fromkeys(reasons.of_job(self.workflow.dag.reason(job)) for job in own)
            reason = textwrap.shorten("; ".join(why), LONGEST - 30, placeholder=" ...")
            lines += [f"{rule.name:<14}{len(own):>6}   {printable(reason)}"] if own else []
        return "\n".join([*lines, f"total{len(self.jobs):>15}\n"])

    def succeed(self) -> None:
        """Delete what is not needed any more, and answer."""
        # also of jobs that an earlier run finished, before it was killed
        delete_kept(path for job in self.workflow.dag.jobs for path in job.output)
        self.answer()

    def answer(self) -> None:
        """Print the paths of the results, and the report's answers."""
        page = Path(self.results, "report/index.html")
        targets = sorted(set(self.workflow.dag_settings.targets) - {"all", "default", "report"})
        if not targets and page.exists():
            _print_last(f"report: {page}")
            targets = answers(page)
        for target in reversed(targets):
            if target in TABLES:
                target = f"{target}: {self.results}/tables/{target}.md"
            _print_last(target)

    def fail(self) -> None:
        """Print the reason for each failed job from its log, the first failure last."""
        for path, of_executor in reversed(self.failed.values()):
            said = Path(path).read_text(errors="replace").strip() if Path(path).is_file() else ""
            sentences = re.findall(r"^cdmae: .*", said, re.MULTILINE)
            last = said.split("\n")[-1]
            reason = sentences[-1] if sentences else last
            if not said and of_executor:  # such as a submission that SLURM refuses
                reason = of_executor
            elif not sentences and "Traceback" not in said:
                reason = "it was killed, by Ctrl-C, from outside or for using too much memory"
                reason += f"; its last line: {last}" if last else ""
            _print_last(f"{path}: {reason}")


def _say(record: logging.LogRecord, words: str) -> None:
    """Replace what Snakemake's handlers print of a record."""
    record.event = None
    record.msg = words


def _print_last(line: str) -> None:
    """Print a line at the end of the process, before the lines of earlier calls.

    Snakemake logs its own last lines after its hooks have run.
    """
    atexit.register(print, printable(line), file=sys.stderr)
