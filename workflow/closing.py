"""Print the last lines of a run: the report's answer and path, or the reasons why jobs failed.

Snakemake logs its own last lines after its hooks have run. The lines of this module are therefore
printed when the process ends.
"""

from __future__ import annotations

import atexit
import html
import logging
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from cdmae.terminal import printable
from workflow.facts import FIGURES, TABLES

QUESTION = re.compile(r'<p class="question">(.*?)</p>', re.DOTALL)
VERDICT = re.compile(r'<h2 class="verdict">(.*?)</h2>', re.DOTALL)
# Snakemake's advice after a dry run, which users do not need because each job has its reasons
ADVICE = ("Some jobs were triggered by provenance", "Rules with provenance triggered jobs:")


def print_last(line: str) -> None:
    """Print a line at the end of the process, before the lines of earlier calls."""
    atexit.register(print, line, file=sys.stderr)


def answers(page: Path) -> list[str]:
    """Extract a report's questions with their answers, one line each; omit unanswered ones."""
    text = page.read_text(encoding="utf-8")
    lines = []
    for question, verdict in zip(QUESTION.findall(text), VERDICT.findall(text), strict=False):
        plain = html.unescape(re.sub("<[^>]+>", "", f"{question} {verdict}"))
        lines.append(printable(" ".join(plain.split())))
    return lines


def print_results(results: str, targets: Iterable[str]) -> None:
    """Print, at the end, the paths of the requested exhibits, or the report's path and answers."""
    exhibits = [name for name in (*TABLES, *FIGURES) if name in targets]
    for name in exhibits:
        print_last(f"{name}: {results}/tables/{name}.{'md' if name in TABLES else 'svg'}")
    page = Path(results, "report/index.html")
    if exhibits or not page.exists():
        return
    print_last(f"report: {page}")
    for words in reversed(answers(page)):
        print_last(words)


def keeps(record: logging.LogRecord) -> bool:
    """Filter log records: drop Snakemake's advice on other options for rerunning."""
    return not str(record.msg).startswith(ADVICE)
