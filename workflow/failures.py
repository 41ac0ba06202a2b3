"""Report the failed jobs of a run, one sentence each, printed after Snakemake's own output."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from snakemake.logging import get_event
from snakemake_interface_logger_plugins.common import LogEvent

from cdmae.terminal import printable

if TYPE_CHECKING:
    from snakemake.jobs import Job

FAILED = "CalledProcessError in file"  # a record in which Snakemake repeats the command of a job
STATUS = re.compile(r"returned non-zero exit status (\d+)|died with <Signals\.(\w+)")
RANK = r"(?:\[rank\d+\]: )?"  # the prefix of every line if torch runs several processes
TRACEBACK = re.compile(rf"^{RANK}Traceback \(most recent call last\):$", re.MULTILINE)
EXCEPTION = re.compile(rf"^{RANK}(?P<words>[A-Za-z_][\w.]*(?:: .*)?)$", re.MULTILINE)
LAUNCHER = "torch.distributed.elastic"  # torchrun adds a traceback of its own


def last_words(text: str) -> str:
    """Extract the reason for a failure from a log.

    The reason is the last message of a command, or else the exception of a traceback; it is empty
    if the log has neither.
    """
    sentences = re.findall(r"^cdmae: .*", text, re.MULTILINE)
    if sentences:
        return sentences[-1]
    exceptions = [EXCEPTION.search(text, found.end()) for found in TRACEBACK.finditer(text)]
    if not exceptions and "SyntaxError: " in text:  # has no header if a script cannot be parsed
        exceptions = [EXCEPTION.search(text, text.index("SyntaxError: "))]
    words = [found["words"] for found in exceptions if found]
    own = [each for each in words if not each.startswith(LAUNCHER)]
    return (own or words or [""])[-1]


def ending(text: str) -> str:
    """Describe how a command ended, from Snakemake's error, such as ``was killed by SIGKILL``."""
    found = STATUS.search(text)
    if not found:
        return "failed"
    status = int(found[1] or signal.Signals[found[2]] + 128)
    if status - 128 in set(signal.Signals):
        return f"was killed by {signal.Signals(status - 128).name}"
    return f"ended with exit status {status}"


@dataclass(frozen=True)
class Failure:
    """A failed job: its log, the memory that it requested in megabytes, and how it ended."""

    log: str
    megabytes: int
    how: str

    def __str__(self) -> str:
        """Describe the failure: the log and the reason, or how the job ended and its memory."""
        path = Path(self.log)
        text = path.read_text(errors="replace") if path.is_file() else ""
        reason = last_words(text)
        if reason:
            return printable(f"{self.log}: {reason}")
        lines = text.strip().split("\n")
        last = f"its last line is: {lines[-1]}" if lines[-1] else "it wrote nothing"
        asked = (
            f"; it had requested {self.megabytes:,} MB of memory (mem_mb)" if self.megabytes else ""
        )
        return printable(f"{self.log}: the job {self.how}; {last}{asked}")


class Failures:
    """The failed jobs of a run, from the records that Snakemake logs."""

    def __init__(self, job_of: Callable[[int], Job]) -> None:
        """Store a function that looks up a job by its number."""
        self.job_of = job_of
        self.errors: list[str] = []
        self.failed: dict[int, Failure] = {}

    def __iter__(self) -> Iterator[Failure]:
        """Iterate over the failed jobs in the order in which they failed."""
        return iter(self.failed.values())

    def __call__(self, record: logging.LogRecord) -> bool:
        """Filter log records: a failed command is printed only once."""
        event = get_event(record)
        if event == LogEvent.ERROR and FAILED in str(record.msg):
            self.errors.append(str(record.msg))
            return False
        if event == LogEvent.JOB_ERROR:
            self.add(record)
        elif event == LogEvent.JOB_FINISHED:  # the job succeeded at a later attempt
            self.failed.pop(record.job_id, None)
        return True

    def add(self, record: logging.LogRecord) -> None:
        """Store the failed job that a record reports.

        The command of a killed job is removed from the record, because bash has already printed it.
        """
        command = record.shellcmd or ""
        error = next((text for text in self.errors if command and command in text), "")
        how = ending(error) + (f": {record.rule_msg}" if record.rule_msg else "")
        if how.startswith("was killed"):
            record.shellcmd = None
        log = record.log[0] if record.log else record.rule_name
        megabytes = self.job_of(record.jobid).resources.get("mem_mb", 0)
        self.failed.pop(record.jobid, None)
        self.failed[record.jobid] = Failure(log, megabytes, how)
