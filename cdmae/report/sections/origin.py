"""Show what was run: collections, config, command, versions and the files of results."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.config import seeds
from cdmae.layout import place
from cdmae.report import notation, tables
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames

MOST = 4  # collections whose table is not folded
# options of the command that decide the results
KEPT = ("--configfile", "--configfiles", "--config", "-C")


def setup(facts: Facts, frames: Frames) -> dict[str, Any]:
    """Gather the facts with which the run can be made again."""
    circumstances = {"wall": None, "machine": {}, "versions": {}} | facts.circumstances
    return {
        **circumstances,
        "facts": facts,
        "origin": {"commit": "", "changed": False, "command": []} | circumstances.get("origin", {}),
        "collections": tables.html(_collections(facts), "Collections", texts=["queries"]),
        "many": len(facts.collections) > MOST,
        "made": {name: corpus.about for name, corpus in facts.collections.items() if corpus.about},
        "commands": {name: command(facts, name) for name in facts.systems},
    }


def command(facts: Facts, system: str) -> str:
    """Return the command that makes a system's numbers, of all seeds, and nothing else."""
    results = notation.without_folders(facts.config.results)
    names = [name for name in seeds.replicate(facts.config).systems if seeds.base(name) == system]
    files = [place(results, "measured", system=name) for name in names]
    words = facts.circumstances.get("origin", {}).get("command", [])
    options = []
    is_kept = False
    for before, word in pairwise(words):
        is_option = word.startswith("-")
        if is_option:
            is_kept = word.partition("=")[0] in KEPT
        # other words after config files are targets
        is_value = before in KEPT or "=" in word or word.endswith((".yaml", ".yml"))
        if is_kept and (is_option or is_value):
            options.append(word)
    return notation.command_line(["./run", *files, *options])


def _collections(facts: Facts) -> pd.DataFrame:
    """Make a row per collection: its size, its splits, and its source."""
    rows = []
    for name, corpus in facts.collections.items():
        splits = []
        for split, queries in corpus.queries.items():
            words = "not judged"
            if split in corpus.per_query:
                queries = corpus.judged[split]
                words = f"{corpus.per_query[split]:.3g} judged each"
            splits.append(f"{split} {formats.count(queries)} ({words})")
        targets = [target for target in facts.targets if target.collection == name]
        row = {
            "collection": name,
            "passages": formats.count(corpus.passages),
            "queries": "; ".join(splits),
            "use": "zero-shot" if any(map(facts.zero_shot, targets)) else "",
            "source": facts.config.collections[name].source,
        }
        rows.append(row)
    return pd.DataFrame(rows)
