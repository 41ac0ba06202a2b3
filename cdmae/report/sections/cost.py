"""Where time and memory went, from Snakemake's benchmark files."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.report.charts import Row, rows
from cdmae.report.facts import Facts
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.sections import Section, panels, paragraphs
from cdmae.report.tables import Cell, Table

# the steps of the pipeline in its order: rule -> what it does; rules that are not here come behind under their names
STEPS = {
    "collection": "collections",
    "tokenizer": "tokenizers",
    "tokens": "tokenising",
    "ngrams": "n-gram counts",
    "importance": "importance",
    "masked_terms": "masked terms",
    "pretrain": "pre-training",
    "index_bm25": "BM25 indexes",
    "mine_bm25": "mining with BM25",
    "mine": "mining with retrievers",
    "mine_external": "mining with other retrievers",
    "train_reranker": "training rerankers",
    "teacher": "teacher scores",
    "train_retriever": "training retrievers",
    "vectors": "encoding passages",
    "vectors_external": "encoding with other retrievers",
    "search_bm25": "searching with BM25",
    "search": "searching with retrievers",
    "search_external": "searching with other retrievers",
    "rerank": "reranking",
    "fuse": "fusion",
    "measures": "measures",
    "release": "model cards",
}
LONGEST = 12  # jobs that are listed one by one


def section(facts: Facts) -> Section | None:
    """A bar and a row per rule, and the longest jobs."""
    if facts.benchmarks.empty:
        return None
    frame = facts.benchmarks.assign(step=facts.benchmarks["rule"].map(lambda rule: STEPS.get(rule, rule)))
    order = {rule: place for place, rule in enumerate(STEPS)}
    frame = frame.sort_values(
        "rule", key=lambda rules: rules.map(lambda rule: order.get(rule, len(order))), kind="stable"
    )
    tables = [by_step(frame), longest(frame)]
    figure = _time(frame)
    total, cpu, most = frame["seconds"].sum(), frame["cpu"].sum(), frame["memory"].max()
    lead = (
        f"{formats.plural(len(frame), 'job')} worked for {formats.duration(total)} in all"
        + (f", {formats.duration(cpu)} of processor time" if cpu else "")
        + (f"; the largest took {formats.memory(most)} of memory" if most == most else "")
        + ". Jobs that run side by side are each counted in full; a training that was stopped and went on counts its "
        "last part."
    )
    body = [paragraphs(lead), tag("div", tables[0].html(), panels([figure]), class_="beside")]
    body.append(tag("details", tag("summary", "The longest jobs"), tables[1].html()))
    return Section("cost", "Time and memory", "Time and memory", Markup("".join(body)), tables=tables, figures=[figure])


def by_step(frame: pd.DataFrame) -> Table:
    """One row per step of the pipeline."""
    body = []
    for step, jobs in frame.groupby("step", sort=False):
        total, cpu, most = jobs["seconds"].sum(), jobs["cpu"].sum(min_count=1), jobs["memory"].max()
        body.append(
            [str(step), Cell(str(len(jobs)), len(jobs)), _time_cell(total), _time_cell(cpu), _memory_cell(most)]
        )
    total, cpu, most = frame["seconds"].sum(), frame["cpu"].sum(min_count=1), frame["memory"].max()
    body.append(["all", Cell(str(len(frame)), len(frame)), _time_cell(total), _time_cell(cpu), _memory_cell(most)])
    head = ["step", "jobs", "time", "processor time", "peak memory"]
    return Table("cost", "Time and memory by step", head, body)


def longest(frame: pd.DataFrame) -> Table:
    """The jobs that took longest."""
    top = frame.sort_values("seconds", ascending=False, kind="stable").head(LONGEST)
    body = [
        [f"{rule} {job}" if job != rule else rule, _time_cell(seconds), _time_cell(cpu), _memory_cell(memory)]
        for rule, job, seconds, cpu, memory in zip(
            top["rule"], top["job"], top["seconds"], top["cpu"], top["memory"], strict=True
        )
    ]
    return Table("jobs", "The longest jobs", ["job", "time", "processor time", "peak memory"], body)


def _time_cell(seconds: float) -> Cell:
    return Cell(formats.duration(seconds), None if math.isnan(seconds) else float(seconds))


def _memory_cell(megabytes: float) -> Cell:
    return Cell(formats.memory(megabytes), None if math.isnan(megabytes) else float(megabytes))


def _time(frame: pd.DataFrame) -> Figure:
    """Bars of the time by step, those that take next to nothing together."""
    by = frame.groupby("step", sort=False)["seconds"].sum()
    large = by[by >= 0.01 * by.sum()]
    minutes = 60.0 if by.max() >= 120 else 1.0
    entries = [Row(str(step), formats.duration(s), bar=s / minutes, colour=1) for step, s in large.items()]
    rest = float(by.drop(large.index).sum())
    if rest:
        entries.append(Row("all others", formats.duration(rest), bar=rest / minutes, colour=2))
    axis = "minutes" if minutes > 1 else "seconds"
    high = float(np.nanmax([entry.bar for entry in entries]))
    return rows("cost", "Time by step", entries, low=0, high=high, axis=axis)
