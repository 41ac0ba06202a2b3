"""Analyse runs beyond measures: overlap of negatives, false negatives, and changed ranks.

Of a long run, only `SAMPLE` evenly spaced queries are analysed. As in training
(`cdmae.finetuning.groups`), negatives are the passages of a run except the query's judged passages.
A pair of query and passage has the key: query x number of passages + passage.
"""

from __future__ import annotations

import itertools
import math
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.collections.store import count_passages, read_qrels, read_queries, take_passages
from cdmae.report.charts import Figure, Row, Series, lines, rows
from cdmae.report.columns import main_column
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.paper.methods import main_chain
from cdmae.report.sections import GREY, Section, colour
from cdmae.report.tables import Cell, Table
from cdmae.runs import Run, count_queries, read_run

SAMPLE = 2000  # queries
# depths at which the overlap of lists is computed
DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
RANKS = (5, 10, 20, 50, 100, 200, 500, 1000)  # ends of the buckets of the audit
RANDOM = "random negatives"  # the name of negatives that were drawn, not mined
SHOWN = 5  # queries that are shown of each kind
LETTERS = 220  # characters that are shown of a passage
NOTHING = np.empty(0, np.int64)
EVERYTHING = np.iinfo(np.int32).max
_WIDTH = 1 << 32  # more passages than any collection has
percent = partial(formats.percent, decimals=1)


def evenly(count: int, most: int) -> np.ndarray:
    """Return at most `most` evenly spaced indices below `count`, int64."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).astype(np.int64))


def lists(run: Run, judged: np.ndarray = NOTHING, depth: int = EVERYTHING) -> pd.DataFrame:
    """Return the best `depth` passages of every query of a run, without the pairs `judged`.

    The frame has the columns key, query, rank (from 1, judged passages not counted), passage and
    score.
    """
    lengths = np.diff(run.starts)
    query = np.repeat(np.arange(len(run)), lengths)
    rank = np.arange(len(query)) - np.repeat(run.starts[:-1], lengths)
    columns = {
        "key": query * _WIDTH + run.passages,
        "query": query,
        "passage": run.passages,
        "score": run.scores,
    }
    frame = pd.DataFrame(columns)
    frame = frame[(rank < depth) & ~frame["key"].isin(judged)]
    return frame.assign(rank=frame.groupby("query").cumcount() + 1)


def relevant(folder: str, split: str) -> pd.DataFrame:
    """Read the judgments of relevant passages, with the keys of the pairs."""
    qrels = read_qrels(folder, split)
    judged = qrels[qrels["grade"] > 0].astype({"query": np.int64, "passage": np.int64})
    return judged.assign(key=judged["query"] * _WIDTH + judged["passage"])


# --- negatives ------------------------------------------------------------------------------------


def negatives(facts: Facts) -> Section | None:
    """Show the overlap of negatives along the importance-aware chain, and the teacher's scores."""
    pairs = overlaps(facts)
    by_pair = pairs.groupby(["negatives of", "and of"], sort=False)
    student, shares = next(iter(audit(facts).items()), ("", None))
    buckets = shares.buckets if shares else pd.DataFrame(columns=["negatives", "scored", "above"])
    alike = "Similarity of the negatives of two stages"
    caption = f"Negatives of {student} that its teacher scores above the judged passage"
    forms = {"best K": str, "Jaccard index": percent}
    tables = [
        Table.of("negatives-overlap", alike, pairs, forms, heads=2),
        Table.of("negatives-audit", caption, buckets, {"scored": formats.count, "above": percent}),
    ]
    figures = [_overlap_figure(pairs, alike), _audit_figure(facts, student, buckets)]
    values = {
        "overlaps": by_pair.tail(1).to_numpy().tolist(),
        "student": student,
        "teacher": facts.system(student).get("teacher", ""),
        "shares": shares,
        "share": percent,
    }
    section = Section("negatives", values, tables, figures)
    return section if section.tables else None


class Audit(NamedTuple):
    """The shares of negatives that a teacher scores above the judged passage, nan without any.

    buckets: the result of `above_positive`.
    """

    mined: float
    random: float
    buckets: pd.DataFrame


@cache
def audit(facts: Facts) -> dict[str, Audit]:
    """Audit the teacher's scores for the first student of the importance-aware chain, by its name.

    The result is empty without scores.
    """
    teachers = facts.paths.get("teachers", {})
    student = next((name for name in main_chain(facts) if name in teachers), "")
    if not student:
        return {}
    mined, queries, judged = _negatives(facts, student)
    buckets = above_positive(read_run(teachers[student], queries), mined, judged)
    if buckets.empty:
        return {}
    is_random = buckets["negatives"] == RANDOM
    shares = [_mean_share(rows) for rows in (buckets[~is_random], buckets[is_random])]
    return {student: Audit(*shares, buckets)}


def _mean_share(rows: pd.DataFrame) -> float:
    """Return the share of all negatives in some rows of `above_positive`; nan without any."""
    scored = rows["scored"].sum()
    return float((rows["above"] * rows["scored"]).sum() / scored) if scored else math.nan


def _overlap_figure(pairs: pd.DataFrame, title: str) -> Figure | None:
    """Draw the overlap by depth, one line per pair of lists."""
    depths = sorted(pairs["best K"].unique())
    series = []
    for names, pair in pairs.groupby(["negatives of", "and of"], sort=False):
        positions = [depths.index(depth) for depth in pair["best K"]]
        indices = list(pair["Jaccard index"])
        series.append(Series(" and ".join(names), positions, indices, len(series)))
    return lines(
        "negatives-overlap",
        title,
        series,
        x_axis="best K of each list",
        y_axis="Jaccard index",
        low=0,
        markers=True,
        x_names=[str(depth) for depth in depths],
    )


def _audit_figure(facts: Facts, student: str, buckets: pd.DataFrame) -> Figure | None:
    """Draw, by rank, the share of mined negatives that score above the judged passage."""
    entries = []
    for label, _, above in buckets.itertuples(index=False):
        hue = GREY if label == RANDOM else colour(facts, student)
        entries.append(Row(label, percent(above), bar=100 * above, colour=hue))
    title = "Negatives that the teacher prefers to the judged passage"
    axis = "share of the negatives it scored, %"
    return rows("negatives-audit", title, entries, low=0, axis=axis, beside=True)


def overlaps(facts: Facts) -> pd.DataFrame:
    """Compare the lists of negatives of the importance-aware chain's stages in pairs.

    The frame has the columns of the report's table. Jaccard indices are means over the queries.
    """
    mined: dict[str, pd.DataFrame] = {}
    depths: dict[str, int] = {}
    for student in main_chain(facts):
        if student in facts.paths.get("mined", {}):
            entry = facts.entries("systems")[student]
            source = entry["negatives"]
            mined[source] = _negatives(facts, student)[0]
            depths[source] = facts.entries("stages")[entry["stage"]]["depth"]
    body = []
    for first, second in itertools.combinations(mined, 2):
        a = mined[first]
        b = mined[second]
        deepest = min(depths[first], depths[second])
        queries = pd.concat([a["query"], b["query"]]).nunique()
        for depth in sorted({depth for depth in DEPTHS if depth < deepest} | {deepest}):
            body.append([first, second, depth, jaccard(a, b, depth, queries)])
    return pd.DataFrame(body, columns=["negatives of", "and of", "best K", "Jaccard index"])


def jaccard(first: pd.DataFrame, second: pd.DataFrame, depth: int, queries: int) -> float:
    """Return the mean over queries of |A and B| / |A or B|, for the best `depth` passages.

    A query without passages counts as 0.
    """
    a, b = (negatives[negatives["rank"] <= depth] for negatives in (first, second))
    both = a.loc[a["key"].isin(b["key"]), "query"].value_counts()
    counts = pd.concat([a["query"], b["query"]]).value_counts()
    return float((both / (counts - both)).sum() / max(queries, 1))


def _negatives(facts: Facts, student: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return a student's source of mined negatives, the rows to examine, and the judged keys."""
    stage = facts.entries("stages")[facts.entries("systems")[student]["stage"]]
    path = facts.paths["mined"][student]
    queries = evenly(count_queries(path), SAMPLE)
    folder = facts.paths["collections"][stage["collection"]]
    judged = relevant(folder, stage["split"])["key"].to_numpy()
    return lists(read_run(path, queries), judged, stage["depth"]), queries, judged


def above_positive(teacher: Run, mined: pd.DataFrame, judged: np.ndarray) -> pd.DataFrame:
    """Count, by mined rank, the negatives that score above the best judged passage of their query.

    Scored passages that were not mined are random negatives; they form the last row. The frame has
    the columns negatives, scored (the number of negatives) and above (the share that scores
    higher).
    """
    scores = lists(teacher)
    positive = scores["key"].isin(judged)
    best = scores[positive].groupby("query")["score"].max().rename("best")
    others = scores[~positive].join(best, on="query", how="inner")
    rank = others["key"].map(mined.set_index("key")["rank"]).fillna(0)
    labels = [f"rank {low + 1} to {high}" for low, high in itertools.pairwise((0, *RANKS))]
    bucket = pd.cut(rank, [-1, 0, *RANKS], labels=[RANDOM, *labels]).rename("negatives")
    bucket = bucket.cat.reorder_categories([*labels, RANDOM])
    above = (others["score"] > others["best"]).groupby(bucket, observed=True)
    shares = above.agg(scored="size", above="mean")
    return shares.reset_index().astype({"negatives": str})


# --- queries side by side -------------------------------------------------------------------------


def queries(facts: Facts) -> Section | None:
    """Show the queries with the largest changes of rank, and the hardest ones, in folded lists."""
    frame = cases(facts)
    if frame.empty:
        return None
    before, after = compared(facts)
    heads = {
        "kind": "kind",
        "query": "query",
        "before": f"rank, {before}",
        "after": f"rank, {after}",
        "relevant": "judged",
        "first_before": f"first, {before}",
        "first_after": f"first, {after}",
    }
    shown = frame.rename(columns=heads)[list(heads.values())]
    for column in list(shown)[2:4]:
        shown[column] = [Cell(rank_in_words(rank), rank or None) for rank in shown[column].tolist()]
    shown[list(shown)[4:]] = shown[list(shown)[4:]].map(cut)
    table = Table.of("queries", "Queries side by side", shown, heads=2, texts=list(shown)[4:])
    by_kind = {kind: group.to_dict("records") for kind, group in frame.groupby("kind", sort=False)}
    values = {
        "facts": facts,
        "target": main_column(facts).target,
        "before": before,
        "after": after,
        "cases": by_kind,
    }
    return Section("queries", values | {"cut": cut, "rank": rank_in_words}, [table])


def cut(text: str) -> str:
    """Shorten a passage at a word boundary."""
    return text if len(text) <= LETTERS else text[:LETTERS].rsplit(" ", 1)[0] + " …"


def rank_in_words(rank: int) -> str:
    """Format a passage's rank, where 0 means that it was not found."""
    return formats.count(rank) if rank else "not found"


def compared(facts: Facts) -> tuple[str, str] | None:
    """Return (before, after): the first section's systems, or the baseline and the last stage."""
    pairs = masking_pairs(facts)
    chain = main_chain(facts)
    if pairs:
        after, before = pairs[0]
    elif facts.baseline and chain:
        before = facts.baseline
        after = chain[-1]
    else:
        return None
    runs = facts.paths.get("runs", {})
    return (before, after) if before != after and {before, after} <= set(runs) else None


def cases(facts: Facts) -> pd.DataFrame:
    """Return the most improved, the most worsened and the hardest queries.

    The frame has the columns kind, query, before and after (ranks of the first relevant passage, 0:
    not found), first_before and first_after (the texts of the passages at rank 1), and relevant
    (the text of a relevant passage).
    """
    pair = compared(facts)
    column = main_column(facts)
    if not pair or list(column.target) != facts.paths.get("deciding"):
        return pd.DataFrame()
    target = column.target
    runs = [read_run(facts.paths["runs"][name]) for name in pair]
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
        before=ranks[0, frame["row"]], after=ranks[1, frame["row"]],
        **passages.map(lambda passage: texts.get(passage, "")),
    )  # fmt: skip


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
