"""What the runs tell beyond their measures: how alike mined negatives are, how many are none, which queries moved.

A long run is sampled: `SAMPLE` queries, evenly spaced. Negatives are a run without the judged passages of its query, as
in training (`cdmae.finetuning.groups`); a key is query x passages + passage.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

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


class Lists(NamedTuple):
    """Ranked passages of sampled queries end to end: the query [N], the rank from 1 [N] and the passage [N] of each."""

    query: np.ndarray
    rank: np.ndarray
    passage: np.ndarray

    def keys(self, depth: int) -> np.ndarray:
        """The (query, passage) pairs down to a depth, one int64 each, sorted."""
        chosen = self.rank <= depth
        return np.sort(self.query[chosen] * _WIDTH + self.passage[chosen])


_WIDTH = 1 << 32  # more passages than any collection has


def sampled(queries: int) -> np.ndarray:
    """The rows of the queries that are looked at, int64."""
    return np.unique(np.linspace(0, queries - 1, min(queries, SAMPLE)).astype(np.int64))


def lists(run: Run, rows: np.ndarray, judged: np.ndarray, depth: int) -> Lists:
    """The best `depth` of some queries of a run, without the `judged` keys; ranks count what is left."""
    lengths = np.minimum(np.diff(run.starts)[rows], depth)
    begins = np.cumsum(lengths) - lengths
    query = np.repeat(rows, lengths)
    passage = run.passages[np.repeat(run.starts[rows] - begins, lengths) + np.arange(len(query))].astype(np.int64)
    kept = ~np.isin(query * _WIDTH + passage, judged)
    query, passage = query[kept], passage[kept]
    first = np.searchsorted(query, query)  # rows ascend, so a query's passages are adjacent
    return Lists(query, np.arange(len(query)) - first + 1, passage)


def jaccard(first: Lists, second: Lists, depth: int, queries: int) -> float:
    """The mean over the queries of |A and B| / |A or B| of their best `depth`; queries without any passage count 0."""
    a, b = first.keys(depth), second.keys(depth)
    both = np.isin(a, b, assume_unique=True)
    rows, found = np.unique(np.concatenate([a, b]) // _WIDTH, return_counts=True)
    shared = np.zeros(len(rows))
    at, counts = np.unique(a[both] // _WIDTH, return_counts=True)
    shared[np.searchsorted(rows, at)] = counts
    return float((shared / (found - shared)).sum() / max(queries, 1))


@cache
def overlaps(facts: Facts) -> list[Overlap]:
    """Of the lists that the stages of the importance-aware chain draw their negatives from, each pair."""
    chain = [name for name in main_chain(facts) if name in facts.paths.get("mined", {})]
    found: dict[str, Lists] = {}
    depth_of: dict[str, int] = {}
    for student in chain:
        system = facts.entries("systems")[student]["negatives"]
        depth_of[system] = facts.entries("stages")[facts.entries("systems")[student]["stage"]]["depth"]
        found[system] = _negatives(facts, student)[0]
    pairs = []
    for first, second in itertools.combinations(found, 2):
        most = min(depth_of[first], depth_of[second])
        depths = sorted({depth for depth in DEPTHS if depth < most} | {most})
        queries = len(np.unique(np.concatenate([found[first].query, found[second].query])))
        values = [jaccard(found[first], found[second], depth, queries) for depth in depths]
        pairs.append(Overlap(first, second, depths, values))
    return pairs


def _negatives(facts: Facts, student: str) -> tuple[Lists, np.ndarray, np.ndarray]:
    """What a student draws its mined negatives from, the rows that are looked at, and the judged keys."""
    stage = facts.entries("stages")[facts.entries("systems")[student]["stage"]]
    path = facts.paths["mined"][student]
    rows = sampled(count_queries(path))
    run = read_run(path, rows)
    judged = _judged(facts, Target(stage["collection"], stage["split"]))
    return lists(run, rows, judged, stage["depth"]), rows, judged


def _judged(facts: Facts, target: Target) -> np.ndarray:
    qrels = read_qrels(facts.paths["collections"][target.collection], target.split)
    relevant = qrels[qrels["grade"] > 0]
    return relevant["query"].to_numpy(np.int64) * _WIDTH + relevant["passage"].to_numpy(np.int64)


@cache
def audit(facts: Facts) -> tuple[str, list[Bucket]]:
    """The student that is looked at, and its negatives by rank: those that its teacher prefers may be no negatives."""
    student = next((name for name in main_chain(facts) if name in facts.paths.get("teachers", {})), "")
    if not student:
        return "", []
    mined, rows, judged = _negatives(facts, student)
    return student, above_positive(read_run(facts.paths["teachers"][student], rows), rows, mined, judged)


def above_positive(teacher: Run, rows: np.ndarray, mined: Lists, judged: np.ndarray) -> list[Bucket]:
    """The share of negatives whose score exceeds that of the best judged passage of their query, by mined rank.

    What the teacher scored and nobody mined was drawn at random: the last bucket.
    """
    scored = lists(teacher, rows, np.empty(0, np.int64), np.iinfo(np.int32).max)
    values = np.concatenate([np.empty(0, np.float32), *(teacher.ranked(row)[1] for row in rows.tolist())])
    keys = scored.query * _WIDTH + scored.passage
    positive = np.isin(keys, judged)
    best = np.full(int(rows.max(initial=-1)) + 1, np.nan)
    np.fmax.at(best, scored.query[positive], values[positive])
    left = ~positive & np.isfinite(best[scored.query])
    keys, above = keys[left], (values > best[scored.query])[left]
    order = np.argsort(mined.query * _WIDTH + mined.passage)
    known = (mined.query * _WIDTH + mined.passage)[order]
    place = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
    hit = known[place] == keys if len(known) else np.zeros(len(keys), dtype=bool)
    rank = np.where(hit, mined.rank[order][place] if len(known) else 0, 0)
    buckets = []
    for low, high in itertools.pairwise((0, *RANKS)):
        inside = (rank > low) & (rank <= high)
        if inside.any():
            buckets.append(Bucket(f"rank {low + 1} to {high}", int(inside.sum()), float(above[inside].mean())))
    if (rank == 0).any():
        buckets.append(Bucket("random ones", int((rank == 0).sum()), float(above[rank == 0].mean())))
    return buckets


# --- queries side by side --------------------------------------------------------------------------------------------


def compared(facts: Facts) -> tuple[str, str] | None:
    """(Before, after): the pair of the first screen, else the baseline and the last stage."""
    pairs, runs = masking_pairs(facts), facts.paths.get("runs", {})
    chain = main_chain(facts)
    found = pairs[0][::-1] if pairs else (facts.baseline, chain[-1]) if facts.baseline and chain else None
    return found if found and found[0] != found[1] and set(found) <= set(runs) else None


@cache
def cases(facts: Facts) -> dict[str, list[Case]]:
    """The queries that gained most ranks, those that lost most, and those that are hardest for both."""
    pair, target = compared(facts), main_target(facts)
    if not pair or not target or target != Target(*facts.paths["shown"]):
        return {}
    before, after = (read_run(facts.paths["runs"][name]) for name in pair)
    folder = facts.paths["collections"][target.collection]
    qrels = read_qrels(folder, target.split)
    relevant = qrels[(qrels["grade"] > 0) & (qrels["passage"] < count_passages(folder))]
    keys = relevant["query"].to_numpy(np.int64) * _WIDTH + relevant["passage"].to_numpy(np.int64)
    ranks = np.stack([first_ranks(run, keys) for run in (before, after)])
    chosen = select(ranks, np.unique(relevant["query"].to_numpy(np.int64)))
    positives = relevant.drop_duplicates("query").set_index("query")["passage"]
    rows = list(dict.fromkeys(itertools.chain(*chosen.values())))
    shown = {row: [*_first(before, row), *_first(after, row), int(positives[row])] for row in rows}
    texts = _texts(folder, sorted({passage for each in shown.values() for passage in each}))
    queries = read_queries(folder, target.split)["text"]
    made = {
        row: Case(queries[row], *ranks[:, row].tolist(), *(texts.get(passage, "") for passage in passages))
        for row, passages in shown.items()
    }
    return {kind: [made[row] for row in rows] for kind, rows in chosen.items()}


def first_ranks(run: Run, relevant: np.ndarray) -> np.ndarray:
    """The rank of the first relevant passage of every query, int64 [Q]; 0 where the run does not have one."""
    found = lists(run, np.arange(len(run)), np.empty(0, np.int64), np.iinfo(np.int32).max)
    hits = np.isin(found.query * _WIDTH + found.passage, relevant)
    ranks = np.zeros(len(run), dtype=np.int64)
    rows, first = np.unique(found.query[hits], return_index=True)
    ranks[rows] = found.rank[hits][first]
    return ranks


def select(ranks: np.ndarray, judged: np.ndarray) -> dict[str, list[int]]:
    """Rows of queries by their ranks before and after [2, Q]: improved and worsened most (by ratio), and hardest.

    Not found counts as the last rank of all. Of the hardest, often many that nobody found, some are taken evenly.
    """
    filled = np.where(ranks[:, judged] > 0, ranks[:, judged], ranks.max(initial=0) + 1)
    gain = np.log(filled[0] / filled[1])
    found = {}
    for kind, order in (("improved", -gain), ("worsened", gain)):
        found[kind] = [row for row in np.argsort(order, kind="stable")[:SHOWN] if order[row] < 0]
    best = filled.min(0)
    hard = np.flatnonzero((best == best.max(initial=0)) & (best > 1))
    found["hardest"] = hard[np.unique(np.linspace(0, max(len(hard) - 1, 0), min(len(hard), SHOWN)).astype(np.int64))]
    return {kind: [int(judged[row]) for row in rows] for kind, rows in found.items()}


def _first(run: Run, row: int) -> list[int]:
    """The passage that is ranked first; -1 where nothing was found."""
    return run.ranked(row)[0][:1].tolist() or [-1]


def _texts(folder: str, rows: list[int]) -> dict[int, str]:
    rows = [row for row in rows if row >= 0]
    table = take_passages(folder, np.array(rows, dtype=np.int64))
    titles, texts = (table[name].to_pylist() for name in ("title", "text"))
    return {row: f"{title} {text}".strip() for row, title, text in zip(rows, titles, texts, strict=True)}
