"""Compare TREC runs from any source: their measures, and the significance of the differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cdmae.errors import InputError
from cdmae.evaluation.measures import measure
from cdmae.evaluation.significance import corrected, paired
from cdmae.log import say
from cdmae.retrieval import trec
from cdmae.terminal import printable

TESTED = ("a", "b", "difference", "low", "high", "queries")  # the fields of a `Difference`


def compare(runs: Sequence[Path], qrels: Path, measures: Sequence[str]) -> pd.DataFrame:
    """Compare TREC runs with the first run: one row per measure and run.

    Columns: measure, run and mean, and for all but the first run: difference (its mean minus the
    first run's), p, and p_holm, low and high (p and interval after Holm's correction over the runs,
    per measure; the interval is empty if the queries allow none). Queries without judgments are
    ignored. A judged query that is missing from a run counts 0, and a message is logged.
    """
    for index, path in enumerate(runs):
        if path in runs[:index]:
            raise InputError(f"{path} is given twice; allowed: each run once")
    values = _values(runs, qrels, measures)
    rows = []
    for name in measures:
        tested = against_first([frame[name] for frame in values.values()])
        for run, row in zip(values, tested, strict=True):
            rows.append({"measure": name, "run": run, **row})
    return pd.DataFrame(rows).replace({np.nan: None})


def _values(runs: Sequence[Path], qrels: Path, measures: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Measure each run; map it to a frame with a row per judged query and a column per measure."""
    lines = [trec.read_lines(path) for path in runs]
    judged = trec.read_qrels(qrels)
    query_ids = _ids("query_id", judged, lines)
    passage_ids = _ids("passage_id", judged, lines)
    judged["query"] = query_ids.get_indexer(judged["query_id"])
    judged["passage"] = passage_ids.get_indexer(judged["passage_id"])
    asked = judged["query_id"].drop_duplicates()
    values = {}
    for path, run in zip(runs, lines, strict=True):
        answered = asked.isin(run["query_id"]).sum()
        if not answered:
            raise InputError(f"{path} and {qrels} have no query in common")
        if answered < len(asked):
            say(f"{path} contains {answered} of {len(asked)} judged queries; the others count 0")
        run["query_id"] = query_ids.get_indexer(run["query_id"])
        run["passage_id"] = passage_ids.get_indexer(run["passage_id"])
        ranked = trec.as_run(run, len(query_ids), len(run))
        measured = measure(ranked, judged, query_ids, measures, f"the judgments of {qrels}")
        values[str(path)] = measured.pivot(index="query_id", columns="measure", values="value")
    return values


def _ids(column: str, judged: pd.DataFrame, lines: Sequence[pd.DataFrame]) -> pd.Index:
    """List each distinct id in a column of the judgments and the runs."""
    columns = [judged[column], *(run[column] for run in lines)]
    return pd.Index(pd.concat(columns).unique())


def against_first(values: Sequence[pd.Series]) -> list[dict[str, float]]:
    """Compare each series of values [Q] with the first: a row per series, as in `compare`."""
    first, *others = values
    tests = [paired(other.to_numpy(), first.to_numpy()) for other in others]
    rows = [{"mean": first.mean()}]
    for alone, test in zip(tests, corrected(tests), strict=True):
        tested = {name: getattr(test, name) for name in TESTED}
        rows.append({"mean": test.a, **tested, "p": alone.p, "p_holm": test.p})
    return rows


def table(compared: pd.DataFrame) -> str:
    """Format a comparison as a Markdown table, with measures times 100 as in the report.

    Each difference has its interval after Holm, and p before and after Holm.
    """
    labels = compared.columns[: compared.columns.get_loc("mean")]
    rows = [_table_row(row, labels) for _, row in compared.iterrows()]
    frame = pd.DataFrame(rows).fillna("")
    return frame.to_markdown(index=False, disable_numparse=True)


def _table_row(row: pd.Series, labels: pd.Index) -> dict[str, str]:
    """Format a row's cells, keyed by the headings of the table."""
    cells = {label: printable(str(row[label])) for label in labels}
    cells["mean x 100"] = f"{100 * row['mean']:.2f}"
    if row["p"] is None:
        return cells
    difference = f"{100 * row['difference']:+.2f}"
    if row["low"] is None:
        return {
            **cells,
            "difference, Holm": f"{difference} (too few queries)",
            "p": "",
            "p, Holm": "",
        }
    interval = f"[{100 * row['low']:+.2f}, {100 * row['high']:+.2f}]"
    return {
        **cells,
        "difference, Holm": f"{difference} {interval}",
        "p": f"{row['p']:.2g}",
        "p, Holm": f"{row['p_holm']:.2g}",
    }
