"""Show single queries of two systems: the most improved, the most worsened, and the hardest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.collections.store import count_passages, read_queries, take_passages
from cdmae.report.columns import Column, reported
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.report.negatives import evenly, lists, relevant
from cdmae.runs import Run, read_run

SHOWN = 5  # queries that are shown of each kind
LETTERS = 220  # characters that are shown of a passage


def queries(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show queries with the largest changes of rank between two systems, in folded lists."""
    pair = pair_of(facts, frames)
    if not pair or list(facts.deciding or []) != facts.paths.get("deciding"):
        return None
    found = cases(facts, *pair)
    if found.empty:
        return None
    groups = found.groupby("kind", sort=False)
    return {
        "facts": facts,
        "target": facts.deciding,
        "before": pair[0],
        "after": pair[1],
        "cases": {kind: group.to_dict("records") for kind, group in groups},
        "cut": cut,
        "rank": rank_in_words,
    }


def pair_of(facts: Facts, frames: Frames) -> tuple[str, str] | None:
    """Return (before, after): uniform and other masks, or else BM25 and the best system."""
    runs = facts.paths.get("runs", {})
    column: Column | None = reported(facts)
    for ours, uniform in masking_pairs(facts):
        if {ours, uniform} <= set(runs):
            return uniform, ours
    means = {name: frames.mean(name, column).value for name in runs} if column else {}
    before = facts.bm25 or facts.baseline
    others = {name: mean for name, mean in means.items() if name != before and mean == mean}
    if before not in runs or not others:
        return None
    return before, max(others, key=others.__getitem__)


def cut(text: str) -> str:
    """Shorten a passage at a word boundary."""
    return text if len(text) <= LETTERS else text[:LETTERS].rsplit(" ", 1)[0] + " …"


def rank_in_words(rank: int) -> str:
    """Format a passage's rank, where 0 means that it was not found."""
    return formats.count(rank) if rank else "not found"


def cases(facts: Facts, before: str, after: str) -> pd.DataFrame:
    """Return the most improved, the most worsened and the hardest queries.

    The frame has the columns kind, query, before and after (ranks of the first relevant passage, 0:
    not found), first_before and first_after (the texts of the passages at rank 1), and relevant
    (the text of a relevant passage).
    """
    target = facts.deciding
    runs = [read_run(facts.paths["runs"][name]) for name in (before, after)]
    folder = facts.paths["collections"][target.collection]
    judged = relevant(folder, target.split)
    judged = judged[judged["passage"] < count_passages(folder)]
    ranks = np.stack([first_ranks(run, judged["key"].to_numpy()) for run in runs])
    chosen = select(ranks, np.unique(judged["query"]))
    kinds = [(kind, row) for kind, rows in chosen.items() for row in rows]
    frame = pd.DataFrame(kinds, columns=["kind", "row"])
    passages = frame[[]].assign(
        first_before=_first_passages(runs[0], frame["row"]),
        first_after=_first_passages(runs[1], frame["row"]),
        relevant=frame["row"].map(judged.drop_duplicates("query").set_index("query")["passage"]),
    )
    needed = np.unique(passages)
    needed = needed[needed >= 0]
    table = take_passages(folder, needed)
    rows = zip(needed.tolist(), table.column("title"), table.column("text"), strict=True)
    texts = {passage: f"{title} {text}".strip() for passage, title, text in rows}
    return frame.assign(
        query=read_queries(folder, target.split)["text"].to_numpy()[frame["row"]],
        before=ranks[0, frame["row"]],
        after=ranks[1, frame["row"]],
        **passages.map(lambda passage: texts.get(passage, "")),
    )


def _first_passages(run: Run, queries: pd.Series) -> list[int]:
    """Return the row of each query's passage at rank 1; -1 if the run has none."""
    return [next(iter(run.ranked(query)[0].tolist()), -1) for query in queries]


def first_ranks(run: Run, relevant: np.ndarray) -> np.ndarray:
    """Return the rank of each query's first relevant passage, int64 [Q]; 0 if the run has none."""
    ranked = lists(run)
    ranks = ranked[ranked["key"].isin(relevant)].groupby("query")["rank"].min()
    return ranks.reindex(range(len(run)), fill_value=0).to_numpy()


def select(ranks: np.ndarray, judged: np.ndarray) -> dict[str, list[int]]:
    """Choose rows of queries by their ranks before and after [2, Q].

    The kinds are the most improved and the most worsened queries (by ratio of ranks), and the
    hardest queries. A passage that was not found counts as one rank after the last. The hardest
    queries are sampled evenly, because they are often many.
    """
    filled = np.where(ranks[:, judged] > 0, ranks[:, judged], ranks.max(initial=0) + 1)
    gain = np.log(filled[0] / filled[1])
    rows = {}
    for kind, order in (("improved", -gain), ("worsened", gain)):
        rows[kind] = [row for row in np.argsort(order, kind="stable")[:SHOWN] if order[row] < 0]
    best = filled.min(0)
    hard = np.flatnonzero((best == best.max(initial=0)) & (best > 1))
    rows["hardest"] = hard[evenly(len(hard), SHOWN)]
    return {kind: judged[of_kind].tolist() for kind, of_kind in rows.items()}
