"""Compare anybody's runs: their measures, and whether the differences are more than luck."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cdmae.errors import InputError
from cdmae.evaluation.measures import measure
from cdmae.evaluation.significance import holm, paired
from cdmae.log import say
from cdmae.retrieval import trec
from cdmae.terminal import printable


def compare(runs: Sequence[Path], qrels: Path, measures: Sequence[str]) -> pd.DataFrame:
    """Compare TREC runs with the first of them: a row a measure and run.

    Columns: measure, run, mean, and of all but the first run: difference (its mean minus the
    first's), low and high (95 % interval of the paired t-test), p, and p_holm, corrected for the
    runs of a measure. Queries without judgments do not count; a judged query that a run lacks
    counts 0, and a line says so.
    """
    for place, path in enumerate(runs):
        if path in runs[:place]:
            raise InputError(f"{path} is there twice; allowed: each run once")
    lines, judged = [trec.read_lines(path) for path in runs], trec.read_qrels(qrels)
    query_ids, passage_ids = (
        pd.Index(pd.concat([judged[column], *(run[column] for run in lines)]).unique())
        for column in ("query_id", "passage_id")
    )
    judged["query"] = query_ids.get_indexer(judged["query_id"])
    judged["passage"] = passage_ids.get_indexer(judged["passage_id"])
    asked, values = judged["query_id"].drop_duplicates(), {}
    for path, run in zip(runs, lines, strict=True):
        answered = asked.isin(run["query_id"]).sum()
        if not answered:
            raise InputError(f"{path} and {qrels} have no query in common")
        if answered < len(asked):
            say(f"{path} has {answered} of {len(asked)} judged queries; the others count 0")
        run["query_id"] = query_ids.get_indexer(run["query_id"])
        run["passage_id"] = passage_ids.get_indexer(run["passage_id"])
        ranked = trec.as_run(run, len(query_ids), len(run))
        measured = measure(ranked, judged, query_ids, measures, f"the judgments of {qrels}")
        values[str(path)] = measured.pivot(index="query_id", columns="measure", values="value")
    compared = []
    for name in measures:
        rows = against_first([frame[name] for frame in values.values()])
        compared += [
            {"measure": name, "run": run, **row} for run, row in zip(values, rows, strict=True)
        ]
    return pd.DataFrame(compared).replace({np.nan: None})


def against_first(values: Sequence[pd.Series]) -> list[dict[str, float]]:
    """Compare the values [Q] of several, query by query, with those of the first: a row each, as in
    `compare`.
    """
    first, *others = values
    tests = [paired(other, first) for other in others]
    corrected = holm([test.p for test in tests])
    return [
        {"mean": first.mean()},
        *(
            {"mean": test.a, **test._asdict(), "p_holm": p}
            for test, p in zip(tests, corrected, strict=True)
        ),
    ]


def table(compared: pd.DataFrame) -> str:
    """Write a comparison as a Markdown table, measures times 100 as in the report.

    Differences have their 95 % interval, which is not corrected, and p before and after Holm.
    """
    what = compared.columns[: compared.columns.get_loc("mean")]

    def shown(row: pd.Series) -> dict[str, str]:
        named = {column: printable(str(value)) for column, value in row[what].items()}
        words = {**named, "mean x 100": f"{100 * row['mean']:.2f}"}
        if row["p"] is None:
            return words
        difference, low, high = (
            f"{100 * row[name]:+.2f}" for name in ("difference", "low", "high")
        )
        interval = f"{difference} [{low}, {high}]"
        return {
            **words,
            "difference, 95 %": interval,
            "p": f"{row['p']:.2g}",
            "p, Holm": f"{row['p_holm']:.2g}",
        }

    frame = pd.DataFrame([shown(row) for _, row in compared.iterrows()]).fillna("")
    return frame.to_markdown(index=False, disable_numparse=True)
