"""Show what was run: collections, jobs, config, command, versions and the files of results."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.config.seeds import base
from cdmae.report import tables
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames

TEXTS = ("queries", "made from")  # columns of the table of collections
KEPT = ("--configfile", "--config")  # options of the command that decide the results


def setup(facts: Facts, frames: Frames) -> dict[str, Any]:
    """Gather the facts with which the run can be made again."""
    return {
        "facts": facts,
        "given": {"wall": None, "machine": {}, "versions": {}} | facts.given,
        "origin": {"commit": "", "changed": False, "command": []} | facts.given.get("origin", {}),
        "collections": tables.html(_collections(facts), "Collections", texts=TEXTS),
        "total": frames.cost("rule").sum().to_dict(),
        "commands": {name: command(facts, name) for name in facts.systems},
    }


def command(facts: Facts, system: str) -> str:
    """Return the command that makes a system's numbers, and nothing else."""
    options: list[str] = []
    is_kept = False
    for word in facts.given.get("origin", {}).get("command", [])[1:]:
        if word.startswith("-"):
            is_kept = word.partition("=")[0] in KEPT
        if is_kept:
            options.append(word)
    results = facts.config.get("results", "results")
    names = [name for name in facts.given.get("measures", {}) if base(name) == system]
    files = [f"{results}/measured/{name}.tsv" for name in names]
    return formats.command_line(["./run", *files, *options])


def _collections(facts: Facts) -> pd.DataFrame:
    """Make a row per collection: its size, its splits, and its source."""
    rows = []
    for name, corpus in facts.collections.items():
        splits = []
        for split, queries in corpus.queries.items():
            judged = corpus.judged.get(split, 0)
            words = f"{corpus.per_query(split):.3g} judged each" if judged else "not judged"
            splits.append(f"{split} {formats.count(judged or queries)} ({words})")
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
    return pd.DataFrame(rows)
