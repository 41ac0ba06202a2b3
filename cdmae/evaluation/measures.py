"""Measures of a run, per query, by ir_measures, whose notation names them.

The order of the run is the ranking: ties stand as they are, by passage row. trec_eval breaks ties by passage id, in
reverse, whatever the rank column says; here scores go down with the rank, and `cdmae.retrieval.trec` writes runs such
that it reads the same ranking.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from ir_measures import providers

from cdmae.config.checks import PROVIDERS, read_measure
from cdmae.errors import InputError
from cdmae.log import say
from cdmae.runs import Run

COLUMNS = ("query", "passage", "grade")
AT_ONCE = 500_000  # hits, since one takes some 200 bytes in the dictionaries of ir_measures
PROVIDER = providers.FallbackProvider([providers.registry[name] for name in PROVIDERS])


def measure(
    run: Run,
    qrels: pd.DataFrame,
    query_ids: Iterable[str],
    measures: Iterable[str],
    judgments: object = "the judgments",
) -> pd.DataFrame:
    """Return a frame (query_id, measure, value): every measure of every judged query, 0 where the run found nothing.

    qrels: (query, passage, grade) rows as `cdmae.collections.store.read_qrels` gives them, a grade below 0 counting as
    0; query_ids: the id of every query of the run. Queries without judgments are left out, as trec_eval does.
    judgments: their name in messages. Raises `InputError` where no grade is as high as the lowest that a measure takes
    for relevant.
    """
    query_ids = list(query_ids)
    if len(run) != len(query_ids):
        raise InputError(f"the run has {len(run)} queries and the split {len(query_ids)}; delete the run and run again")
    parsed = {name: read_measure(name) for name in measures}
    grades = {name: key.params.get("rel", 1) for name, key in parsed.items()}
    highest, lowest = qrels["grade"].max(), min(grades.values(), default=1)
    if lowest > highest:
        raise InputError(
            f"{judgments} have no relevant passage: their highest grade is {highest}; allowed: judgments with a grade "
            f"of {lowest} or more, or measures that ask for less (evaluation.relevant, or rel in their names)"
        )
    for name in (name for name, grade in grades.items() if grade > highest):
        say(f"no judgment has the grade that {name} asks for, {highest} is the highest: it is 0")
    judged: dict[int, dict[str, int]] = {}
    qrels = qrels.assign(
        grade=qrels["grade"].clip(lower=0)
    )  # trec_eval's C code crashes where all of a query's are less
    for place, (query, passage, grade) in enumerate(zip(*(qrels[key] for key in COLUMNS), strict=True)):
        grades = judged.setdefault(query, {})
        # all passages that the collection lacks share a row, and each of them counts
        grades[f"judgment {place}" if str(passage) in grades else str(passage)] = grade
    queries = sorted(judged)
    scores = np.arange(np.diff(run.starts).max(initial=0), 0, -1, dtype=float).tolist()
    values, step = {}, max(1, AT_ONCE // max(1, len(scores)))
    for first in range(0, len(queries), step):
        some = queries[first : first + step]
        ranked = {query: run.ranked(query)[0].tolist() for query in some}
        run_of = {str(query): dict(zip(map(str, rows), scores, strict=False)) for query, rows in ranked.items() if rows}
        for metric in PROVIDER.iter_calc(parsed.values(), {str(query): judged[query] for query in some}, run_of):
            values[metric.measure, metric.query_id] = metric.value
    rows = [(query_ids[query], name, values[key, str(query)]) for name, key in parsed.items() for query in queries]
    return pd.DataFrame(rows, columns=["query_id", "measure", "value"])
