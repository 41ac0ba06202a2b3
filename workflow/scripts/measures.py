"""Compute every measure of a system for every query."""

from pathlib import Path
from typing import Any

import pandas as pd

from cdmae.collections import Counts, Judgments, check_needed
from cdmae.collections.store import read_qrels, read_queries
from cdmae.evaluation.measures import measure
from cdmae.evaluation.per_query import write_measures
from cdmae.job import on_targets, run
from cdmae.runs import read_run


def main(
    *,
    system: str,
    names: list[str],
    collections: list[Path],
    splits: list[str],
    runs: list[Path],
    measures: list[str],
    needed: dict[str, Any],
    output: Path,
) -> None:
    """Measure the runs of a system; all lists have one entry per target.

    measures: separated by spaces. needed: for each collection, the settings that its job checks;
    grades are checked again, because `evaluation.relevant` does not run that job again.
    """
    frames = []
    targets = zip(names, collections, splits, runs, measures, strict=True)
    for name, collection, split, file, wanted in targets:
        query_ids = read_queries(collection, split)["query_id"]
        qrels = read_qrels(collection, split)
        counts = Counts(splits={split: Judgments(None, int(qrels["grade"].max()))})
        check_needed(needed[name], name, counts)
        judgments = f"the judgments of {collection}, split {split},"
        found = measure(read_run(file), qrels, query_ids, wanted.split(), judgments)
        frames.append(found.assign(collection=name, split=split))
        for label, mean in found.groupby("measure", sort=False)["value"].mean().items():
            queries = found["query_id"].nunique()
            print(f"{system} {name} {split}: {label} {mean:.4f} over {queries:,} queries")
    write_measures(output, pd.concat(frames))


if __name__ == "__main__":
    run(main, snakemake, **on_targets(snakemake, "runs"))
