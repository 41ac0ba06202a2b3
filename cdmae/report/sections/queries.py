"""Show single queries of two systems: the most improved and the most worsened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.collections.store import count_passages, read_queries, take_passages
from cdmae.report.columns import reported
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.report.negatives import lists, relevant
from cdmae.runs import read_run

SHOWN = 5  # queries that are shown of each kind
LETTERS = 220  # characters that are shown of a passage


def queries(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show queries with the largest changes of rank between two systems, in folded lists."""
    pair = pair_of(facts, frames)
    if not pair or not facts.given.get("deciding"):
        return None
    found = cases(facts, *pair)
    if found.empty:
        return None
    groups = found.groupby("kind", sort=False)
    return {
        "facts": facts,
        "before": pair[0],
        "after": pair[1],
        "cases": {kind: group.to_dict("records") for kind, group in groups},
        "cut": cut,
        "rank": rank_in_words,
    }


def pair_of(facts: Facts, frames: Frames) -> tuple[str, str] | None:
    """Return BM25, or else the baseline, and the best other system; None without two runs."""
    column = reported(facts)
    known = [name for name in facts.systems if name in facts.given.get("runs", {})]
    before = facts.bm25 or facts.baseline
    others = {name: frames.mean(name, column).value for name in known if name != before}
    return (before, max(others, key=others.__getitem__)) if before in known and others else None


def cut(text: str) -> str:
    """Shorten a passage at a word boundary."""
    return text if len(text) <= LETTERS else text[:LETTERS].rsplit(" ", 1)[0] + " …"


def rank_in_words(rank: int) -> str:
    """Format a passage's rank, where 0 means that it was not found."""
    return formats.count(rank) if rank else "not found"


def cases(facts: Facts, before: str, after: str) -> pd.DataFrame:
    """Return the most improved and the most worsened queries.

    The frame has the columns kind, query, before and after (ranks of the first relevant passage, 0:
    not found), first_before and first_after (the texts of the passages at rank 1), and relevant
    (the text of a relevant passage).
    """
    target = facts.deciding
    folder = facts.given["collections"][target.collection]
    judged = relevant(folder, target.split)
    judged = judged[judged["passage"] < count_passages(folder)]
    ranks = {}
    shown = pd.DataFrame({"relevant": judged.groupby("query")["passage"].first()})
    for column, name in (("before", before), ("after", after)):
        ranked = lists(read_run(facts.given["runs"][name]))
        ranked["rank"] = ranked.groupby("query").cumcount() + 1
        hits = ranked[ranked["key"].isin(judged["key"])]
        ranks[column] = hits.groupby("query")["rank"].min()
        shown[f"first_{column}"] = ranked.groupby("query")["passage"].first()
    found = pd.DataFrame(ranks, index=shown.index).fillna(0).astype(int).join(shown)
    chosen = select(found[["before", "after"]])
    rows = found.loc[chosen["query"]].fillna(-1).reset_index()
    passages = rows[["relevant", "first_before", "first_after"]].astype(int)
    needed = np.unique(passages)
    needed = needed[needed >= 0]  # -1: a run without a passage
    table = take_passages(folder, needed)
    titled = zip(table.column("title"), table.column("text"), strict=True)
    texts = dict(zip(needed, (f"{title} {text}".strip() for title, text in titled), strict=True))
    asked = read_queries(folder, target.split)["text"]
    return rows[["before", "after"]].assign(
        kind=chosen["kind"],
        query=rows["query"].map(asked),
        **passages.map(lambda passage: texts.get(passage, "")),
    )


def select(ranks: pd.DataFrame) -> pd.DataFrame:
    """Choose queries by their ranks before and after: a frame with the columns kind and query.

    The kinds are the most improved and the most worsened queries, by the ratio of their ranks. A
    passage that was not found counts as one rank after the last.
    """
    filled = ranks.where(ranks > 0, ranks.max(axis=None) + 1)
    gain = np.log(filled["before"] / filled["after"])
    rows = {
        "improved": gain[gain > 0].nlargest(SHOWN),
        "worsened": gain[gain < 0].nsmallest(SHOWN),
    }
    kinds = [(kind, query) for kind, chosen in rows.items() for query in chosen.index]
    return pd.DataFrame(kinds, columns=["kind", "query"])
