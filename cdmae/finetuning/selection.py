"""Select passages for training queries: a run minus the qrels, then filters (section 3.4).

The lists of queries are tables of pairs of a query and a passage, sorted by query.

Shapes: `Q` queries of the split, `E` examples, `P` passages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cdmae.collections.leakage import stable_share
from cdmae.collections.store import EXCLUDED
from cdmae.errors import InputError
from cdmae.models.ragged import Ragged, starts_of
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.finetuning.groups import Drawing


def select(
    run: Run,
    qrels: pd.DataFrame,
    texts: np.ndarray,
    drawing: Drawing,
    ids: pd.Series,
    ranking: Run | None = None,
) -> tuple[dict[str, np.ndarray | Ragged], dict[str, int]]:
    """Select each query's positives and negatives.

    Negatives are the best passages of the run, without relevant passages, passages that the qrels
    exclude (BRIGHT's grade of -100), and copies of either. A teacher's run limits positives and
    negatives to the passages that it ranks, since it scores no others.

    qrels: a sorted frame (query, passage, grade) of row numbers; grades from 1 are relevant. texts:
    the result of `groups.text_ids`, [P]. ids: of the queries, [Q]. ranking: the teacher's run.

    Returns the fields `queries`, `positives`, `barred` and `mined` of `groups.Examples`, and the
    number of queries that are left out, or have random negatives only, by reason.
    """
    mined = _table(run.best(drawing.depth))
    judged = qrels[qrels["passage"] < len(texts)]
    relevant = judged["grade"] > 0
    positives = judged[relevant]
    barred = judged[relevant | (judged["grade"] == EXCLUDED)]
    kept = np.ones(len(run), bool)
    counts = {}

    def leave_out(reason: str, which: np.ndarray) -> None:
        counts[reason] = int((kept & which).sum())
        kept[which] = False

    leave_out("left out without a relevant passage", ~_has(positives, len(run)))
    negatives = mined[~_among(mined, barred, texts)]
    if ranking is not None:
        ranked = _table(ranking)
        positives = positives[_among(positives, ranked)]
        negatives = negatives[_among(negatives, ranked)]
        none = ~_has(positives, len(run))
        leave_out("left out because the teacher ranks no judged passage", none)
        few = _lengths(negatives, len(run)) < drawing.group - 1
        leave_out("left out because the teacher ranks too few negatives", few)
    if drawing.train_queries:
        beyond = _beyond(kept, drawing.train_queries, ids)
        leave_out("left out beyond train_queries", beyond)
    # such as a query that shares no word with another passage, for BM25
    alone = kept & ~_has(negatives, len(run))
    counts["with random negatives only"] = int(alone.sum())
    counts = {reason: count for reason, count in counts.items() if count}
    rows = np.flatnonzero(kept)
    lists = {"positives": positives, "barred": barred, "mined": negatives}
    found = {name: _ragged(table, len(run)).take(rows) for name, table in lists.items()}
    return {"queries": rows.astype(np.int32), **found}, counts


def _beyond(queries: np.ndarray, count: int, ids: pd.Series) -> np.ndarray:
    """Return which queries are left beyond `count`, bool [Q]; raise `InputError` if fewer are left.

    The choice depends only on their ids, so a smaller number chooses some of the queries of a
    larger number.
    """
    left = np.flatnonzero(queries)
    if len(left) < count:
        raise InputError(
            f"train_queries is {count:,}; expected up to {len(left):,}, the queries that have a "
            "relevant passage and negatives, or 0 for all"
        )
    shares = np.array([stable_share(ids[query]) for query in left])
    beyond = np.zeros(len(queries), dtype=bool)
    beyond[left[np.argsort(shares)[count:]]] = True
    return beyond


# --- tables of pairs of a query and a passage -----------------------------------------------------


def _table(run: Run) -> pd.DataFrame:
    """Return a run as a frame (query, passage)."""
    return pd.DataFrame({"query": run.queries, "passage": run.passages})


def _among(
    table: pd.DataFrame, others: pd.DataFrame, texts: np.ndarray | None = None
) -> np.ndarray:
    """Return which pairs are in another table, or have the text of one of its pairs."""

    def keys(pairs: pd.DataFrame) -> np.ndarray:
        passages = pairs["passage"].to_numpy()
        values = passages if texts is None else texts[passages]
        return pairs["query"].to_numpy(np.int64) << 32 | values

    return np.isin(keys(table), keys(others))


def _lengths(table: pd.DataFrame, queries: int) -> np.ndarray:
    return np.bincount(table["query"], minlength=queries)


def _has(table: pd.DataFrame, queries: int) -> np.ndarray:
    return _lengths(table, queries) > 0


def _ragged(table: pd.DataFrame, queries: int) -> Ragged:
    """Group the passages by query."""
    return Ragged(table["passage"].to_numpy(np.int32), starts_of(_lengths(table, queries)))
