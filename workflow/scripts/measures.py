"""Compute every measure of every query, of all systems or of one."""

from pathlib import Path

import pandas as pd

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
    tables: list[Path],
) -> None:
    """Measure the runs of all systems, and write a table for each.

    All lists but `runs` and `tables` have one entry per target; runs: one per target and system.
    measures: separated by spaces.
    """
    frames: dict[Path, list[pd.DataFrame]] = {table: [] for table in tables}
    targets = zip(names, collections, splits, measures, strict=True)
    for number, (name, collection, split, wanted) in enumerate(targets):
        query_ids = read_queries(collection, split)["query_id"]
        qrels = read_qrels(collection, split)
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
