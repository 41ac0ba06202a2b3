"""Audit teachers' scores of hard negatives: the share that a teacher prefers to a right answer.

Of a long run, only `SAMPLE` evenly spaced queries are analysed. As in training
(`cdmae.finetuning.groups`), negatives are the passages of a run except the query's judged passages.
A pair of query and passage has the key: query x number of passages + passage.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from cdmae.collections.store import read_qrels
from cdmae.report.facts import Facts
from cdmae.runs import Run, count_queries, read_run

SAMPLE = 2000  # queries
_WIDTH = 1 << 32  # more passages than any collection has


class Audit(NamedTuple):
    """The shares of negatives that a teacher scores above the judged passage, nan without any."""

    mined: float
    random: float


def evenly(count: int, most: int) -> np.ndarray:
    """Return at most `most` evenly spaced indices below `count`, int64."""
    return np.linspace(0, count - 1, min(count, most), dtype=np.int64)


def lists(run: Run) -> pd.DataFrame:
    """Return the passages of a run, best first: the columns key, query, passage and score."""
    query = np.repeat(np.arange(len(run)), np.diff(run.starts))
    columns = {"query": query, "passage": run.passages, "score": run.scores}
    return pd.DataFrame(columns).assign(key=query * _WIDTH + run.passages)


def relevant(folder: str, split: str) -> pd.DataFrame:
    """Read the judgments of relevant passages, with the keys of the pairs."""
    qrels = read_qrels(folder, split)
    judged = qrels[qrels["grade"] > 0].astype({"query": np.int64, "passage": np.int64})
    return judged.assign(key=judged["query"] * _WIDTH + judged["passage"])


@cache
def audit(facts: Facts) -> dict[str, Audit]:
    """Audit the teachers' scores, by the name of the student; empty without scores."""
    found = {}
    for student, path in facts.given.get("teachers", {}).items():
        stage = facts.entries("stages")[facts.system(student)["stage"]]
        ranked = facts.given["mined"][student]
        queries = evenly(count_queries(ranked), SAMPLE)
        folder = facts.given["collections"][stage["collection"]]
        judged = relevant(folder, stage["split"])["key"]
        mined = lists(read_run(ranked, queries).best(stage["depth"]))["key"]
        shares = above_positive(read_run(path, queries), mined, judged)
        if shares:
            found[student] = shares
    return found


def above_positive(teacher: Run, mined: pd.Series, judged: pd.Series) -> Audit | None:
    """Compute the shares of negatives that score above the best judged passage of their query.

    mined, judged: keys. Scored passages that were not mined are random negatives.
    """
    scores = lists(teacher)
    positive = scores["key"].isin(judged)
    best = scores[positive].groupby("query")["score"].max().rename("best")
    others = scores[~positive].join(best, on="query", how="inner")
    if others.empty:
        return None
    above = others["score"] > others["best"]
    is_mined = others["key"].isin(mined)
    shares = above.groupby(is_mined).mean()
    return Audit(mined=shares.get(True, math.nan), random=shares.get(False, math.nan))
