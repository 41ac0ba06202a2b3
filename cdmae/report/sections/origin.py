"""Show what was run: collections, jobs, config, command, versions and the files of results."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import tables
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames


def setup(facts: Facts, frames: Frames) -> dict[str, Any]:
    """Gather the facts with which the run can be made again."""
    jobs = frames.cost("rule")
    total = jobs.drop(columns="memory").sum().to_dict() if len(jobs) else {}
    return {
        "facts": facts,
        "collections": _collections(facts),
        "jobs": _jobs(jobs),
        "total": total,
        "wall": facts.wall,
        "origin": {"commit": "", "changed": False, "command": [], **facts.origin},
        "commands": {name: command(facts, name) for name in facts.systems},
    }


def command(facts: Facts, system: str) -> str:
    """Return the command that makes a system's numbers, and nothing else."""
    words = facts.origin.get("command") or ["./run"]
    options: list[str] = []
    for word in words:
        if word.startswith("-"):
            taken = word.partition("=")[0] in ("--configfile", "--config")
            options += [word] if taken else []
        elif options and words[0] != word:
            options.append(word)
    results = facts.config.get("results", "results")
    names = [name for name in facts.paths.get("measures", {}) if name.partition("@")[0] == system]
    files = [f"{results}/measures/{name}.tsv" for name in names or [system]]
    return formats.command_line(["./run", *files, *options])


def _collections(facts: Facts) -> str:
    """Make a table with a row per collection: its size, its splits, and its source."""
    rows = []
    for name, corpus in facts.collections.items():
        entry = facts.entries("collections").get(name, {})
        splits = []
        for split, queries in corpus.queries.items():
            judged = corpus.judged.get(split, 0)
            each = f" ({corpus.per_query(split):.3g} judged each)" if judged else ", not judged"
            splits.append(f"{split} {formats.count(judged or queries)}{each}")
        zero_shot = any(facts.zero_shot(each) for each in facts.targets if each.collection == name)
        versions = corpus.about.get("versions") or {}
        origin = ", ".join(f"{key} {value}" for key, value in versions.items())
        source = ": ".join(filter(None, [entry.get("source", ""), origin]))
        use = "zero-shot" if zero_shot else ""
        rows.append([name, formats.count(corpus.passages), "; ".join(splits), use, source])
    heads = ["collection", "passages", "queries", "use", "made from"]
    frame = pd.DataFrame(rows, columns=heads)
    return tables.html(frame, "Collections", texts=heads[2:]) if rows else ""


def _jobs(jobs: pd.DataFrame) -> str:
    """Make a table with a row per rule: its jobs, their time, and the largest memory."""
    if jobs.empty:
        return ""
    frame = pd.DataFrame({"rule": jobs.index})
    frame["jobs"] = jobs["jobs"].map(formats.count).tolist()
    frame["time, s"] = [f"{value:.1f}" for value in jobs["seconds"]]
    frame["processor, s"] = [f"{value:.1f}" for value in jobs["cpu"]]
    frame["memory, MB"] = jobs["memory"].map(formats.memory).tolist()
    return tables.html(frame.rename(columns={"memory, MB": "memory"}), "Jobs by rule")
