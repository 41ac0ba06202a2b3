"""Show single queries of two systems: the most improved and the most worsened."""

from __future__ import annotations

from typing import Any

from cdmae import formats
from cdmae.collections.store import count_passages, read_qrels, read_queries, take_passages
from cdmae.report.columns import of
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.runs import read_run

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
    asked = read_queries(folder, target.split).reset_index().set_index("query_id")
    qrels = read_qrels(folder, target.split)
    is_relevant = (qrels["grade"] > 0) & (qrels["passage"] < count_passages(folder))
    relevant = qrels[is_relevant].groupby("query")["passage"].agg(list)

    def case(query_id: str) -> dict[str, Any]:
        query, text = asked.loc[query_id, ["index", "text"]]
        right = relevant.get(query, [])
        found = {"query": text, "relevant": right[:1], "systems": []}
        for name, run in runs.items():
            ranked = run.ranked(query)[0].tolist()
            ranks = [ranked.index(passage) + 1 for passage in right if passage in ranked]
            rank = formats.count(min(ranks)) if ranks else "not found"
            found["systems"].append({"name": name, "rank": rank, "first": ranked[:1]})
        return found

    values = [facts.values[name, target, column.measure].iloc[:, 0] for name in runs]
    gain = values[1] - values[0]
    changed = {
        "Most improved": gain[gain > 0].nlargest(SHOWN),
        "Most worsened": gain[gain < 0].nsmallest(SHOWN),
    }
    cases = {kind: [case(name) for name in gains.index] for kind, gains in changed.items()}
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


def cut(text: str) -> str:
    """Shorten a passage at a word boundary."""
    return text if len(text) <= LETTERS else text[:LETTERS].rsplit(" ", 1)[0] + " …"
