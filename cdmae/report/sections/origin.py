"""Show what was run: collections, jobs, config, command, versions and the files of results."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.config.seeds import base
from cdmae.report import tables
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames

TEXTS = ("queries", "use", "made from")  # columns of the table of collections
KEPT = ("--configfile", "--config")  # options of the command that decide the results


def setup(facts: Facts, frames: Frames) -> dict[str, Any]:
    """Gather the facts with which the run can be made again."""
    jobs = frames.cost("rule")
    return {
        "facts": facts,
        "collections": _collections(facts),
        "jobs": _jobs(jobs),
        "total": jobs.sum().to_dict(),
        "wall": facts.wall,
        "origin": {"commit": "", "changed": False, "command": [], **facts.origin},
        "commands": {name: command(facts, name) for name in facts.systems},
    }


def command(facts: Facts, system: str) -> str:
    """Return the command that makes a system's numbers, and nothing else."""
    options: list[str] = []
    is_kept = False
    for word in facts.origin.get("command", [])[1:]:
        if word.startswith("-"):
            is_kept = word.partition("=")[0] in KEPT
        if is_kept:
            options.append(word)
    results = facts.config.get("results", "results")
    names = [name for name in facts.paths.get("measures", {}) if base(name) == system]
    files = [f"{results}/measures/{name}.tsv" for name in names or [system]]
    return formats.command_line(["./run", *files, *options])


def _collections(facts: Facts) -> str:
    """Make a table with a row per collection: its size, its splits, and its source."""
    rows = []
    for name, corpus in facts.collections.items():
        splits = []
        for split, queries in corpus.queries.items():
            judged = corpus.judged.get(split, 0)
            words = f"{split} {formats.count(judged or queries)}"
            if judged:
                splits.append(f"{words} ({corpus.per_query(split):.3g} judged each)")
            else:
                splits.append(f"{words}, not judged")
        targets = [target for target in facts.targets if target.collection == name]
        versions = corpus.about.get("versions") or {}
        source = [facts.entries("collections").get(name, {}).get("source", "")]
        source += [f"{package} {version}" for package, version in versions.items()]
        row = {
            "collection": name,
            "passages": formats.count(corpus.passages),
            "queries": "; ".join(splits),
            "use": "zero-shot" if any(map(facts.zero_shot, targets)) else "",
            "made from": ", ".join(source),
        }
        rows.append(row)
    return tables.html(pd.DataFrame(rows), "Collections", texts=TEXTS) if rows else ""


def _jobs(jobs: pd.DataFrame) -> str:
    """Make a table with a row per rule: its jobs, their time, and the largest memory."""
    rows = []
    for rule, spent in jobs.iterrows():
        row = {
            "rule": rule,
            "jobs": formats.count(spent["jobs"]),
            "time, s": f"{spent['seconds']:.1f}",
            "processor, s": f"{spent['cpu']:.1f}",
            "memory": formats.memory(spent["memory"]),
        }
        rows.append(row)
    return tables.html(pd.DataFrame(rows), "Jobs by rule") if rows else ""
