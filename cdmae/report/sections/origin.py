"""Show what was run: collections, config, command, versions and the files of results."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import tables
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames

MOST = 4  # collections whose table is not folded


def setup(facts: Facts, frames: Frames) -> dict[str, Any]:
    """Gather the facts with which the run can be made again."""
    circumstances = {"wall": None, "machine": {}, "versions": {}} | facts.circumstances
    return {
        "facts": facts,
        "origin": {"commit": "", "changed": False, "command": []} | circumstances.get("origin", {}),
        "collections": tables.html(_collections(facts), "Collections", texts=["queries"]),
        "many": len(facts.collections) > MOST,
        "made": {name: corpus.about for name, corpus in facts.collections.items() if corpus.about},
        **circumstances,
    }


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
        row = {
            "collection": name,
            "passages": formats.count(corpus.passages),
            "queries": "; ".join(splits),
            "use": "zero-shot" if any(map(facts.zero_shot, targets)) else "",
            "source": facts.config.collections[name].source,
        }
        rows.append(row)
    return pd.DataFrame(rows)
