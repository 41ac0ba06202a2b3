"""Look into the runs beyond their measures: how alike mined negatives are, how many are none, which queries moved.

A long run is sampled: `SAMPLE` queries, evenly spaced. Negatives are a run without the judged passages of its query, as
in training (`cdmae.finetuning.groups`); a key is query x passages + passage.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from cdmae.collections.store import count_passages, read_qrels, read_queries, take_passages
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts, Target
from cdmae.report.paper.methods import main_chain
from cdmae.report.sections import main_target
from cdmae.runs import Run, count_queries, read_run

SAMPLE = 2000  # queries
DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # at which overlaps are looked at
RANKS = (5, 10, 20, 50, 100, 200, 500, 1000)  # ends of the buckets of the audit
SHOWN = 5  # queries of each kind
NOTHING, EVERYTHING = np.empty(0, np.int64), np.iinfo(np.int32).max
_WIDTH = 1 << 32  # more passages than any collection has


class Overlap(NamedTuple):
    """How alike the negatives of two systems are: the mean over the queries of the Jaccard index of the best K."""

    first: str
    second: str
    depths: list[int]
    jaccard: list[float]


class Bucket(NamedTuple):
    """Negatives of some ranks: how many were scored, and the share that the teacher puts above the judged passage."""

    label: str
    scored: int
    above: float


@dataclass(frozen=True)
class Case:
    """A query: the rank of its first relevant passage before and after (0: not found), and what was ranked first."""

    query: str
    before: int
    after: int
    first_before: str
    first_after: str
    relevant: str


def sampled(queries: int) -> np.ndarray:
    """Return the rows of the queries that are looked at, int64."""
    return np.unique(np.linspace(0, queries - 1, min(queries, SAMPLE)).astype(np.int64))


def lists(run: Run, rows: np.ndarray, judged: np.ndarray = NOTHING, depth: int = EVERYTHING) -> pd.DataFrame:
    """Return the best `depth` of some queries of a run, without the `judged` keys.

    The frame has the columns key, query, rank (from 1, of what is left), passage and score.
    """
    lengths = np.minimum(np.diff(run.starts)[rows], depth)
    begins = np.cumsum(lengths) - lengths
    places = np.repeat(run.starts[rows] - begins, lengths) + np.arange(lengths.sum())
    query, passage = np.repeat(rows, lengths), run.passages[places]
    keys = query * _WIDTH + passage
    frame = pd.DataFrame({"key": keys, "query": query, "passage": passage, "score": run.scores[places]})
    frame = frame[~frame["key"].isin(judged)]
    return frame.assign(rank=frame.groupby("query").cumcount() + 1)


def jaccard(first: pd.DataFrame, second: pd.DataFrame, depth: int, queries: int) -> float:
    """Average over the queries |A and B| / |A or B| of their best `depth`; queries without any passage count 0."""
    a, b = (negatives[negatives["rank"] <= depth] for negatives in (first, second))
    both = a.loc[a["key"].isin(b["key"]), "query"].value_counts()
    counts = pd.concat([a["query"], b["query"]]).value_counts()
    return float((both / (counts - both)).sum() / max(queries, 1))


@cache
def overlaps(facts: Facts) -> list[Overlap]:
    """Compare the lists that the stages of the importance-aware chain draw their negatives from, each pair."""
    negatives: dict[str, tuple[pd.DataFrame, int]] = {}
    for student in main_chain(facts):
        if student in facts.paths.get("mined", {}):
            entry = facts.entries("systems")[student]
            depth = facts.entries("stages")[entry["stage"]]["depth"]
            negatives[entry["negatives"]] = _negatives(facts, student)[0], depth
    pairs = []
    for (first, (a, deepest)), (second, (b, other_deepest)) in itertools.combinations(negatives.items(), 2):
        most = min(deepest, other_deepest)
        depths = sorted({depth for depth in DEPTHS if depth < most} | {most})
        queries = pd.concat([a["query"], b["query"]]).nunique()
        pairs.append(Overlap(first, second, depths, [jaccard(a, b, depth, queries) for depth in depths]))
    return pairs


def _negatives(facts: Facts, student: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return what a student draws its mined negatives from, the rows that are looked at, and the judged keys."""
    stage = facts.entries("stages")[facts.entries("systems")[student]["stage"]]
    path = facts.paths["mined"][student]
    rows = sampled(count_queries(path))
    judged = _relevant(facts.paths["collections"][stage["collection"]], stage["split"])["key"].to_numpy()
    return lists(read_run(path, rows), rows, judged, stage["depth"]), rows, judged


def _relevant(folder: str, split: str) -> pd.DataFrame:
    """Read the judgments of relevant passages, with their keys."""
    qrels = read_qrels(folder, split)
    relevant = qrels[qrels["grade"] > 0].astype({"query": np.int64, "passage": np.int64})
    return relevant.assign(key=relevant["query"] * _WIDTH + relevant["passage"])


@cache
def audit(facts: Facts) -> tuple[str, list[Bucket]]:
    """Return the student that is looked at, and its negatives by rank: its teacher may prefer some to the positive."""
    student = next((name for name in main_chain(facts) if name in facts.paths.get("teachers", {})), "")
    if not student:
        return "", []
    mined, rows, judged = _negatives(facts, student)
    return student, above_positive(read_run(facts.paths["teachers"][student], rows), rows, mined, judged)


def above_positive(teacher: Run, rows: np.ndarray, mined: pd.DataFrame, judged: np.ndarray) -> list[Bucket]:
    """Count the negatives whose score exceeds that of the best judged passage of their query, by mined rank.

    What the teacher scored and nobody mined was drawn at random: the last bucket.
    """
    scored = lists(teacher, rows)
    positive = scored["key"].isin(judged)
    best = scored[positive].groupby("query")["score"].max().rename("best")
    others = scored[~positive].join(best, on="query", how="inner")
    rank = others["key"].map(mined.set_index("key")["rank"]).fillna(0)
    labels = ["random ones", *(f"rank {low + 1} to {high}" for low, high in itertools.pairwise((0, *RANKS)))]
    label = pd.cut(rank, [-1, 0, *RANKS], labels=labels)
    shares = (others["score"] > others["best"]).groupby(label, observed=True).agg(["size", "mean"])
    buckets = [Bucket(str(name), int(size), float(mean)) for name, size, mean in shares.itertuples()]
    return sorted(buckets, key=lambda bucket: bucket.label == labels[0])


# --- queries side by side --------------------------------------------------------------------------------------------


def compared(facts: Facts) -> tuple[str, str] | None:
    """Return (before, after): the pair of the first screen, else the baseline and the last stage."""
    pairs, chain = masking_pairs(facts), main_chain(facts)
    pair = pairs[0][::-1] if pairs else (facts.baseline, chain[-1]) if facts.baseline and chain else None
    return pair if pair and pair[0] != pair[1] and set(pair) <= set(facts.paths.get("runs", {})) else None


@cache
def cases(facts: Facts) -> dict[str, list[Case]]:
    """Return the queries that gained most ranks, those that lost most, and those that are hardest for both."""
    pair, target = compared(facts), main_target(facts)
    if not pair or not target or target != Target(*facts.paths["shown"]):
        return {}
    runs = [read_run(facts.paths["runs"][name]) for name in pair]
    folder = facts.paths["collections"][target.collection]
    relevant = _relevant(folder, target.split)
    relevant = relevant[relevant["passage"] < count_passages(folder)]
    ranks = np.stack([first_ranks(run, relevant["key"].to_numpy()) for run in runs])
    chosen = select(ranks, np.unique(relevant["query"]))
    positives = relevant.drop_duplicates("query").set_index("query")["passage"]
    shown = {  # the passage that each run ranks first, -1 where it has none, and a relevant one
        row: [*(next(iter(run.ranked(row)[0].tolist()), -1) for run in runs), int(positives[row])]
        for row in itertools.chain(*chosen.values())
    }
    texts = _texts(folder, sorted(set(itertools.chain(*shown.values())) - {-1}))
    queries = read_queries(folder, target.split)["text"]
    return {
        kind: [
            Case(queries[row], *ranks[:, row].tolist(), *(texts.get(passage, "") for passage in shown[row]))
            for row in rows
        ]
        for kind, rows in chosen.items()
    }


def first_ranks(run: Run, relevant: np.ndarray) -> np.ndarray:
    """Return the rank of the first relevant passage of every query, int64 [Q]; 0 where the run does not have one."""
    ranked = lists(run, np.arange(len(run)))
    ranks = ranked[ranked["key"].isin(relevant)].groupby("query")["rank"].min()
    return ranks.reindex(range(len(run)), fill_value=0).to_numpy()


def select(ranks: np.ndarray, judged: np.ndarray) -> dict[str, list[int]]:
    """Choose rows of queries by their ranks before and after [2, Q]: improved, worsened most (by ratio), and hardest.

    Not found counts as the last rank of all. Of the hardest, often many that nobody found, some are taken evenly.
    """
    filled = np.where(ranks[:, judged] > 0, ranks[:, judged], ranks.max(initial=0) + 1)
    gain = np.log(filled[0] / filled[1])
    rows = {}
    for kind, order in (("improved", -gain), ("worsened", gain)):
        rows[kind] = [row for row in np.argsort(order, kind="stable")[:SHOWN] if order[row] < 0]
    best = filled.min(0)
    hard = np.flatnonzero((best == best.max(initial=0)) & (best > 1))
    rows["hardest"] = hard[np.unique(np.linspace(0, max(len(hard) - 1, 0), min(len(hard), SHOWN)).astype(np.int64))]
    return {kind: judged[of_kind].tolist() for kind, of_kind in rows.items()}


def _texts(folder: str, rows: list[int]) -> dict[int, str]:
    """Read the texts of some passages, behind their titles."""
    table = take_passages(folder, np.array(rows, dtype=np.int64))
    titles, texts = (table[name].to_pylist() for name in ("title", "text"))
    return {row: f"{title} {text}".strip() for row, title, text in zip(rows, titles, texts, strict=True)}
