"""Where time and memory went, from Snakemake's benchmark files."""

from __future__ import annotations

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.facts import Facts
from cdmae.report.sections import Section
from cdmae.report.tables import Table

# the steps of the pipeline in its order: rule -> what it does; rules that are not here come behind under their names
STEPS = {
    "collection": "collections", "tokenizer": "tokenizers", "tokens": "tokenising", "ngrams": "n-gram counts",
    "importance": "importance", "masked_terms": "masked terms", "pretrain": "pre-training",
    "index_bm25": "BM25 indexes", "mine_bm25": "mining with BM25", "mine": "mining with retrievers",
    "mine_external": "mining with other retrievers", "mine_fusion": "mining with fusions",
    "train_reranker": "training rerankers", "teacher": "teacher scores", "train_retriever": "training retrievers",
    "vectors": "encoding passages", "vectors_external": "encoding with other retrievers",
    "search_bm25": "searching with BM25",
    "search": "searching with retrievers", "search_external": "searching with other retrievers",
    "rerank": "reranking", "weights": "weights of fusions", "fuse": "fusion", "measures": "measures",
    "release": "model cards",
}  # fmt: skip
LONGEST = 12  # jobs that are listed one by one
HEADS = {"seconds": "time", "cpu": "processor time", "memory": "peak memory"}
FORMS = {
    "jobs": str, "time": formats.duration, "processor time": formats.duration, "peak memory": formats.memory
}  # fmt: skip


def section(facts: Facts) -> Section | None:
    """Show a bar and a row per rule, and the longest jobs."""
    if facts.benchmarks.empty:
        return None
    places = {rule: place for place, rule in enumerate(STEPS)}
    jobs = facts.benchmarks.sort_values("rule", key=lambda rules: rules.map(places), kind="stable")
    jobs = jobs.assign(step=jobs["rule"].map(STEPS).fillna(jobs["rule"]))
    by_step = pd.concat(
        some.groupby("step", sort=False).agg(
            jobs=("seconds", "size"), seconds=("seconds", "sum"),
            cpu=("cpu", lambda times: times.sum(min_count=1)), memory=("memory", "max"),
        )
        for some in (jobs, jobs.assign(step="all"))
    ).reset_index()  # fmt: skip
    top = jobs.sort_values("seconds", ascending=False, kind="stable").head(LONGEST)
    names = top["rule"].where(top["job"] == top["rule"], top["rule"] + " " + top["job"])
    longest = top[list(HEADS)].assign(job=names)[["job", *HEADS]]
    tables = [
        Table.of("cost", "Time and memory by step", by_step.rename(columns=HEADS), FORMS),
        Table.of("jobs", "The longest jobs", longest.rename(columns=HEADS), FORMS),
    ]
    return Section("cost", by_step.iloc[-1].to_dict(), tables, [_time(by_step.iloc[:-1].set_index("step")["seconds"])])


def _time(by: pd.Series) -> Figure:
    """Draw bars of the time by step, those that take next to nothing together."""
    large = by[by >= 0.01 * by.sum()]
    size, axis = (60.0, "minutes") if by.max() >= 120 else (1.0, "seconds")
    entries = [Row(str(step), formats.duration(s), bar=s / size, colour=1) for step, s in large.items()]
    rest = float(by.drop(large.index).sum())
    if rest:
        entries.append(Row("all others", formats.duration(rest), bar=rest / size, colour=2))
    return rows("cost", "Time by step", entries, low=0, high=max(entry.bar for entry in entries), axis=axis)
