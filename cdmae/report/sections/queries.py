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
SAME = "this passage was first"
LETTERS = 220  # characters that are shown of a passage
NEAR = 40  # of these at the end, in which a space may be its end


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
    runs = {}
    for name in (before, after):
        path = facts.at("run", system=name, collection=target.collection, split=target.split)
        if path.exists():
            runs[name] = read_run(path)
    if len(runs) < 2:
        return None
    folder = facts.at("collection", collection=target.collection)
    asked = read_queries(folder, target.split)["text"]
    qrels = read_qrels(folder, target.split)
    is_relevant = (qrels["grade"] > 0) & (qrels["passage"] < count_passages(folder))
    relevant = qrels[is_relevant].groupby("query")["passage"].agg(list)
    ranks = pd.DataFrame({name: _ranks(run, relevant) for name, run in runs.items()})
    gain = 1 / ranks[after] - 1 / ranks[before]

    def text(passage: int) -> str:
        (found,) = take_passages(folder, [passage]).to_pylist()
        return cut(f"{found['title']} {found['text']}".strip())

    def case(query: int) -> dict[str, Any]:
        right = relevant[query][0]
        found = []
        for name, run in runs.items():
            rank = ranks.loc[query, name]
            words = "not found" if math.isinf(rank) else formats.count(rank)
            first = run.ranked(query)[0][:1].tolist()
            shown = [SAME if passage == right else text(passage) for passage in first]
            found.append({"name": name, "rank": words, "first": "".join(shown)})
        return {"query": asked[query], "relevant": text(right), "systems": found}

    cases = {
        "Most improved": list(map(case, gain[gain > 0].nlargest(SHOWN).index)),
        "Most worsened": list(map(case, gain[gain < 0].nsmallest(SHOWN).index)),
    }
    if not any(cases.values()):
        return None
    return {"facts": facts, "cases": cases, "systems": [before, after]}


def _ranks(run: Run, relevant: pd.Series) -> pd.Series:
    """Return the rank of the first relevant passage of each query; infinite without one."""
    found = {}
    for query, passages in relevant.items():
        hits = np.flatnonzero(np.isin(run.ranked(query)[0], passages))
        found[query] = hits[0] + 1.0 if len(hits) else math.inf
    return pd.Series(found, dtype=float)


def cut(text: str) -> str:
    """Shorten a passage, at a space if one is near the end: many scripts have none."""
    if len(text) <= LETTERS:
        return text
    space = text.rfind(" ", LETTERS - NEAR, LETTERS)
    return f"{text[: space if space > 0 else LETTERS]} …"
