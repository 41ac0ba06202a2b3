"""Compute every measure of every query, of all systems."""

from pathlib import Path
from typing import Any

import pandas as pd

from cdmae.collections import Counts, Judgments, check_needed
from cdmae.collections.store import read_qrels, read_queries
from cdmae.evaluation.measures import measure
from cdmae.evaluation.per_query import write_measures
from cdmae.job import run
from cdmae.runs import read_run


def main(
    *,
    names: list[str],
    collections: list[Path],
    splits: list[str],
    runs: list[Path],
    measures: list[str],
    needed: dict[str, Any],
    tables: list[Path],
) -> None:
    """Measure the runs of all systems, and write a table for each.

    All lists but `runs` and `tables` have one entry per target; runs: one per target and system.
    measures: separated by spaces. needed: for each collection, the settings that its job checks;
    grades are checked again, because `evaluation.relevant` does not run that job again.
    """
    frames: dict[Path, list[pd.DataFrame]] = {table: [] for table in tables}
    targets = zip(names, collections, splits, measures, strict=True)
    for number, (name, collection, split, wanted) in enumerate(targets):
        query_ids = read_queries(collection, split)["query_id"]
        qrels = read_qrels(collection, split)
        counts = Counts(splits={split: Judgments(None, int(qrels["grade"].max()))})
        check_needed(needed[name], name, counts)
        judgments = f"the judgments of {collection}, split {split},"
        own_runs = runs[number * len(tables) : (number + 1) * len(tables)]
        for table, file in zip(tables, own_runs, strict=True):
            found = measure(read_run(file), qrels, query_ids, wanted.split(), judgments)
            frames[table].append(found.assign(collection=name, split=split))
            for label, mean in found.groupby("measure", sort=False)["value"].mean().items():
                queries = found["query_id"].nunique()
                print(f"{table.stem} {name} {split}: {label} {mean:.4f} over {queries:,} queries")
    for table, parts in frames.items():
        write_measures(table, pd.concat(parts))


if __name__ == "__main__":
    run(main, snakemake)
