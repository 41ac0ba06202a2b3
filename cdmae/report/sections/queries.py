"""Show single queries of two systems: the most improved and the most worsened."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.collections.store import count_passages, read_qrels, read_queries, take_passages
from cdmae.report.columns import of
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.runs import Run, read_run

SHOWN = 5  # queries that are shown of each kind
LETTERS = 220  # characters that are shown of a passage


def queries(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show queries with the largest changes between two systems, in folded lists.

    The systems are BM25, or else the baseline, and the best other system.
    """
    target = facts.deciding
    before = facts.bm25 or facts.baseline
    others = [name for name in facts.systems if name != before]
    if not target or not before or not others:
        return None
    column = of(target, facts.measures_of(target)[0])
    after = max(others, key=lambda name: frames.mean(name, column).value)
    paths = {}
    for name in (before, after):
        paths[name] = facts.at("run", system=name, collection=target.collection, split=target.split)
    if not all(path.exists() for path in paths.values()):
        return None
    runs = {name: read_run(path) for name, path in paths.items()}
    folder = facts.at("collection", collection=target.collection)
    asked = read_queries(folder, target.split)["text"]
    qrels = read_qrels(folder, target.split)
    is_relevant = (qrels["grade"] > 0) & (qrels["passage"] < count_passages(folder))
    relevant = qrels[is_relevant].groupby("query")["passage"].agg(list)
    ranks = pd.DataFrame({name: _ranks(run, relevant) for name, run in runs.items()})
    gain = 1 / ranks[after] - 1 / ranks[before]

    def case(query: int) -> dict[str, Any]:
        found = []
        for name, run in runs.items():
            rank = ranks.loc[query, name]
            words = "not found" if math.isinf(rank) else formats.count(rank)
            found.append({"name": name, "rank": words, "first": run.ranked(query)[0][:1].tolist()})
        return {"query": asked[query], "relevant": relevant[query][:1], "systems": found}

    changed = {
        "Most improved": gain[gain > 0].nlargest(SHOWN),
        "Most worsened": gain[gain < 0].nsmallest(SHOWN),
    }
    cases = {kind: [case(query) for query in gains.index] for kind, gains in changed.items()}
    if not any(cases.values()):
        return None
    needed = set()
    for each in [*cases["Most improved"], *cases["Most worsened"]]:
        needed.update(each["relevant"])
        for system in each["systems"]:
            needed.update(system["first"])
    passages = sorted(needed)
    found = take_passages(folder, passages).to_pylist()
    texts = [cut(f"{passage['title']} {passage['text']}".strip()) for passage in found]
    return {
        "facts": facts,
        "cases": cases,
        "systems": [before, after],
        "texts": dict(zip(passages, texts, strict=True)),
    }


def _ranks(run: Run, relevant: pd.Series) -> pd.Series:
    """Return the rank of the first relevant passage of each query; infinite without one."""
    found = {}
    for query, passages in relevant.items():
        hits = np.flatnonzero(np.isin(run.ranked(query)[0], passages))
        found[query] = hits[0] + 1.0 if len(hits) else math.inf
    return pd.Series(found, dtype=float)


def cut(text: str) -> str:
    """Shorten a passage at a word boundary."""
    return text if len(text) <= LETTERS else text[:LETTERS].rsplit(" ", 1)[0] + " …"
