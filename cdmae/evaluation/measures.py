"""Computing the measures of a run per query, with ir_measures and in its notation.

The ranking is the order of the run, with ties broken by passage row. trec_eval ignores the rank
column and breaks ties by passage id in reverse. Therefore `measure` passes scores that decrease
with the rank, and `cdmae.retrieval.trec` writes runs for which trec_eval finds the same ranking.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from ir_measures import Measure, providers

from cdmae.config.checks import PROVIDERS, read_measure
from cdmae.errors import InputError
from cdmae.runs import Run

AT_ONCE = 500_000  # ranked passages; each takes about 200 bytes in the dictionaries of ir_measures
PROVIDER = providers.FallbackProvider([providers.registry[name] for name in PROVIDERS])


def measure(
    run: Run,
    qrels: pd.DataFrame,
    query_ids: Iterable[str],
    measures: Iterable[str],
    judgments: object = "the judgments",
) -> pd.DataFrame:
    """Compute every measure of every judged query: a frame (query_id, measure, value).

    qrels: rows (query, passage, grade) as returned by `cdmae.collections.store.read_qrels`; a grade
    below 0 counts as 0. query_ids: the ids of the run's queries. judgments: how messages name the
    judgments. A query for which the run ranks nothing counts 0. Queries without judgments are left
    out, as by trec_eval. Raises `InputError` if no grade reaches the lowest grade that any measure
    counts as relevant.
    """
    query_ids = list(query_ids)
    parsed = {name: read_measure(name) for name in measures}
    _check_grades(qrels, parsed, judgments)
    judged = _judged(qrels)
    queries = sorted(judged)
    # The score of each rank, for ir_measures, which sorts by score.
    scores = np.arange(np.diff(run.starts).max(initial=0), 0, -1, dtype=float).tolist()
    step = max(1, AT_ONCE // max(1, len(scores)))
    values = {}
    for first in range(0, len(queries), step):
        some = queries[first : first + step]
        ranked = {}
        for query in some:
            passages = [str(row) for row in run.ranked(query)[0].tolist()]
            if passages:
                ranked[str(query)] = dict(zip(passages, scores, strict=False))
        grades = {str(query): judged[query] for query in some}
        for metric in PROVIDER.iter_calc(parsed.values(), grades, ranked):
            values[metric.measure, metric.query_id] = metric.value
    rows = [
        (query_ids[query], name, values[key, str(query)])
        for name, key in parsed.items()
        for query in queries
    ]
    return pd.DataFrame(rows, columns=["query_id", "measure", "value"])


def _check_grades(qrels: pd.DataFrame, parsed: dict[str, Measure], judgments: object) -> None:
    """Refuse judgments without a relevant passage."""
    highest = qrels["grade"].max()
    lowest = min((key.params.get("rel", 1) for key in parsed.values()), default=1)
    if lowest > highest:
        raise InputError(
            f"{judgments} have no relevant passage: their highest grade is {highest}; expected "
            f"judgments with a grade of {lowest} or more, or measures with a lower threshold "
            "(evaluation.relevant, or rel in their names)"
        )


def _judged(qrels: pd.DataFrame) -> dict[int, dict[str, int]]:
    """Return each query's grades, keyed by passage row as text.

    Judged passages that are not in the collection share one row. Each gets a distinct name, and
    therefore still counts as a relevant passage.
    """
    judged: dict[int, dict[str, int]] = {}
    # trec_eval's C code crashes if all grades of a query are below 0.
    clipped = qrels.assign(grade=qrels["grade"].clip(lower=0))
    for row in clipped.itertuples():
        grades = judged.setdefault(row.query, {})
        name = str(row.passage)
        if name in grades:
            name = f"judgment {row.Index}"
        grades[name] = row.grade
    return judged
