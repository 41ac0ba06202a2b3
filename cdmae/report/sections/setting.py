"""Show the collections, encoders and systems of a run, and its cost in time and memory."""

from __future__ import annotations

from functools import partial

import pandas as pd

from cdmae import formats
from cdmae.config.kinds import AnySystem
from cdmae.fields import parse
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.facts import Facts
from cdmae.report.recipes import shown
from cdmae.report.records import Training
from cdmae.report.sections import LONG, Section
from cdmae.report.tables import Table
from cdmae.report.templates import phrase

# Maps rules to steps, in the order of the pipeline. Other rules follow under their own names.
STEPS = {
    "collection": "collections",
    "tokenizer": "tokenizers",
    "tokens": "tokenising",
    "ngrams": "n-gram counts",
    "importance": "importance",
    "masked_terms": "masked terms",
    "pretrain": "pre-training",
    "index_bm25": "BM25 indexes",
    "bm25": "searching with BM25",
    "train": "training retrievers and rerankers",
    "teacher": "teacher scores",
    "encode": "encoding passages",
    "search": "searching vectors",
    "sparsity": "measuring sparsity",
    "rerank": "reranking",
    "fuse": "fusion",
    "measures": "measures",
    "release": "model cards",
}
LONGEST = 12  # jobs that are listed one by one
HEADS = {"seconds": "time", "cpu": "processor time", "memory": "peak memory"}
FORMS = {
    "jobs": str,
    "time": formats.duration,
    "processor time": formats.duration,
    "peak memory": formats.memory,
}
in_words = partial(phrase, "setting.txt.j2")


def section(facts: Facts) -> Section | None:
    """Show the tables of collections and encoders, and the other tables folded."""
    tables = [collections(facts), encoders(facts), systems(facts)]
    section = Section("setting", {"facts": facts, "long": LONG}, tables)
    return section if section.tables else None


def collections(facts: Facts) -> Table:
    """Make a row per collection: the size and the uses of the collection."""
    used = {entry.get("encoder") for entry in facts.entries("systems").values()}
    encoders = facts.entries("encoders")
    pretrained = [entry.get("collection") for name, entry in encoders.items() if name in used]
    finetuned = [entry.get("collection") for entry in facts.entries("stages").values()]
    body = []
    for name, corpus in facts.collections.items():
        measured = [target for target in facts.targets if target.collection == name]
        uses = in_words(
            "uses",
            pretraining=name in pretrained,
            finetuning=name in finetuned,
            splits=[target.split for target in measured],
            zero_shot=bool(measured) and facts.zero_shot(measured[0]),
        )
        source = facts.entries("collections").get(name, {}).get("source", "")
        origin = in_words("source", source=source, versions=corpus.about.get("versions") or {})
        body.append([name, corpus.passages, in_words("splits", corpus=corpus), uses, origin])
    columns = ["collection", "passages", "queries by split", "used for", "made from"]
    frame = pd.DataFrame(body, columns=columns)
    return Table.of(
        "collections", "Collections", frame, {"passages": formats.count}, texts=columns[2:]
    )


def encoders(facts: Facts) -> Table:
    """Make a row per encoder: the initial weights and the pre-training."""
    body = []
    for name, entry in facts.entries("encoders").items():
        training = facts.encoders.get(name, Training())
        start = entry.get("start", "")
        steps = training.steps if entry.get("objective") != "none" else 0
        row = [
            name,
            in_words("start", name=start, entry=facts.entries("starts").get(start, {})),
            in_words("pretraining", entry=entry, sigma=shown(entry.get("sigma"))),
            f"{formats.count(steps)} × {entry.get('batch')}" if steps else formats.NONE,
            training.about.get("parameters"),
        ]
        body.append(row)
    columns = ["encoder", "starts from", "pre-training", "steps × batch", "parameters"]
    # dtype object keeps integers in columns with missing values
    frame = pd.DataFrame(body, columns=columns, dtype=object)
    return Table.of(
        "encoders", "Encoders", frame, {"parameters": formats.short_count}, texts=columns[1:3]
    )


def systems(facts: Facts) -> Table:
    """Make a row per measured system: the kind and the training of the system."""
    body = []
    for name in facts.systems:
        entry = facts.entries("systems").get(name, {})
        stage = facts.entries("stages").get(entry.get("stage", ""), {})
        body.append(
            [
                name,
                parse(AnySystem, formats.without_folders(entry)).in_words(),
                in_words("recipe", entry=entry, stage=stage),
            ]
        )
    columns = ["system", "what it is", "training"]
    return Table("systems", "Systems", columns, body, texts=columns[1:])


def cost(facts: Facts) -> Section | None:
    """Show a bar and a row per step of the workflow, and the longest jobs."""
    if facts.benchmarks.empty:
        return None
    order = {rule: index for index, rule in enumerate(STEPS)}
    jobs = facts.benchmarks.sort_values("rule", key=lambda rules: rules.map(order), kind="stable")
    jobs = jobs.assign(step=jobs["rule"].map(STEPS).fillna(jobs["rule"]))
    by_step = pd.concat([_sums(jobs), _sums(jobs.assign(step="all"))]).reset_index()
    top = jobs.sort_values("seconds", ascending=False, kind="stable").head(LONGEST)
    names = top["rule"].where(top["job"] == top["rule"], top["rule"] + " " + top["job"])
    longest = top[list(HEADS)].assign(job=names)[["job", *HEADS]]
    tables = [
        Table.of("cost", "Time and memory by step", by_step.rename(columns=HEADS), FORMS),
        Table.of("jobs", "The longest jobs", longest.rename(columns=HEADS), FORMS),
    ]
    figure = _step_figure(by_step.iloc[:-1].set_index("step")["seconds"])
    values = {**by_step.iloc[-1].to_dict(), "wall": facts.wall}
    return Section("cost", values, tables, [figure])


def _sums(jobs: pd.DataFrame) -> pd.DataFrame:
    """Aggregate jobs by step: the sums of the times, and the maximum of the memory."""
    return jobs.groupby("step", sort=False).agg(
        jobs=("seconds", "size"),
        seconds=("seconds", "sum"),
        cpu=("cpu", lambda times: times.sum(min_count=1)),
        memory=("memory", "max"),
    )


def _step_figure(seconds: pd.Series) -> Figure | None:
    """Draw a bar per step; steps of less than 1 % of the time share one bar."""
    large = seconds[seconds >= 0.01 * seconds.sum()]
    unit = 60.0 if seconds.max() >= 120 else 1.0
    entries = [
        Row(str(step), formats.duration(time), bar=time / unit, colour=1)
        for step, time in large.items()
    ]
    rest = float(seconds.drop(large.index).sum())
    if rest:
        entries.append(Row("all others", formats.duration(rest), bar=rest / unit, colour=2))
    axis = "minutes" if unit > 1 else "seconds"
    high = max(entry.bar for entry in entries)
    return rows("cost", "Time by step", entries, low=0, high=high, axis=axis)
