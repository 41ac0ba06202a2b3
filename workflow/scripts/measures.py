"""Compute every measure of every query, of all systems or of one."""

from pathlib import Path

import pandas as pd

from cdmae.collections.store import read_qrels, read_queries
from cdmae.evaluation.measures import measure
from cdmae.evaluation.per_query import write_measures
from cdmae.job import run
from cdmae.runs import Target, read_run


def main(
    *,
    targets: list[Target],
    measures: list[str],
    tables: list[Path],
) -> None:
    """Measure the runs of all systems, and write a table for each.

    measures: those of each target, separated by spaces. tables: in the order of a target's runs.
    """
    frames: dict[Path, list[pd.DataFrame]] = {table: [] for table in tables}
    for target, wanted in zip(targets, measures, strict=True):
        name, split = target.collection, target.split
        query_ids = read_queries(target.folder, split)["query_id"]
        qrels = read_qrels(target.folder, split)
        judgments = f"the judgments of {target.folder}, split {split},"
        for table, file in zip(tables, target.runs, strict=True):
            found = measure(read_run(file), qrels, query_ids, wanted.split(), judgments)
            frames[table].append(found.assign(collection=name, split=split))
            for label, mean in found.groupby("measure", sort=False)["value"].mean().items():
                queries = found["query_id"].nunique()
                print(f"{table.stem} {name} {split}: {label} {mean:.4f} over {queries:,} queries")
    for table, parts in frames.items():
        write_measures(table, pd.concat(parts))


if __name__ == "__main__":
    run(main, snakemake)
