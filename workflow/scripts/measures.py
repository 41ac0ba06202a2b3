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
):
    """Measure the runs of `system` on every target.

    All lists have one entry per target; an entry of `measures` is a list of measures separated by
    spaces. needed: for each collection, the settings that the collection's job checks; the grades
    are checked again, because a change of `evaluation.relevant` does not run that job again.
    """
    frames = []
    for name, collection, split, path, wanted in zip(
        names, collections, splits, runs, measures, strict=True
    ):
        query_ids = read_queries(collection, split)["query_id"]
        qrels = read_qrels(collection, split)
        counts = Counts(splits={split: Judgments(None, int(qrels["grade"].max()))})
        check_needed(needed[name], name, counts)
        judgments = f"the judgments of {collection}, split {split},"
        found = measure(read_run(path), qrels, query_ids, wanted.split(), judgments)
        frames.append(found.assign(collection=name, split=split))
        for label, value in found.groupby("measure", sort=False)["value"].mean().items():
            print(
                f"{system} {name} {split}: {label} {value:.4f} "
                f"over {found['query_id'].nunique():,} queries"
            )
    write_measures(output, pd.concat(frames))


if __name__ == "__main__":
    run(main, snakemake, **on_targets(snakemake, "runs"))
