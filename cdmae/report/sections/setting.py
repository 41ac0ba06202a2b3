"""What was run, on what, and where time and memory went, from Snakemake's benchmark files."""

from __future__ import annotations

from functools import partial

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Row, rows
from cdmae.report.comparisons import shown
from cdmae.report.facts import Facts, Training
from cdmae.report.sections import LONG, Section
from cdmae.report.tables import Table
from cdmae.report.templates import phrase

# the steps of the pipeline in its order: rule -> what it does; rules that are not here come behind
# under their names
STEPS = {
    "collection": "collections",
    "tokenizer": "tokenizers",
    "tokens": "tokenising",
    "ngrams": "n-gram counts",
    "importance": "importance",
    "masked_terms": "masked terms",
    "pretrain": "pre-training",
    "untrained": "encoders without pre-training",
    "index_bm25": "BM25 indexes",
    "mine_bm25": "mining with BM25",
    "mine": "mining with retrievers",
    "mine_external": "mining with other retrievers",
    "mine_fusion": "mining with fusions",
    "train_reranker": "training rerankers",
    "teacher": "teacher scores",
    "train_retriever": "training retrievers",
    "vectors": "encoding passages",
    "vectors_external": "encoding with other retrievers",
    "search_bm25": "searching with BM25",
    "search": "searching with retrievers",
    "search_external": "searching with other retrievers",
    "sparsity": "measuring sparsity",
    "rerank": "reranking",
    "weights": "weights of fusions",
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
    """Show collections and encoders as tables, and fold away what else one may want to look up."""
    tables = [collections(facts), encoders(facts), systems(facts)]
    section = Section("setting", {"facts": facts, "long": LONG}, tables)
    return section if section.tables else None


def collections(facts: Facts) -> Table:
    """Make a row of each collection: its size and what it was used for."""
    used = {entry.get("encoder") for entry in facts.entries("systems").values()}
    pretrained = [
        entry.get("collection") for name, entry in facts.entries("encoders").items() if name in used
    ]
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
    """Make a row of each encoder: where it starts and how it was pre-trained."""
    body = []
    for name, entry in facts.entries("encoders").items():
        training, start = facts.encoders.get(name, Training()), entry.get("start", "")
        steps = training.steps if entry.get("objective") != "none" else 0
        body.append([
            name,
            in_words("start", name=start, entry=facts.entries("starts").get(start, {})),
            in_words("pretraining", entry=entry, sigma=shown(entry.get("sigma"))),
            f"{formats.count(steps)} × {entry.get('batch')}" if steps else formats.NONE,
            training.about.get("parameters"),
        ])  # fmt: skip
    columns = ["encoder", "starts from", "pre-training", "steps × batch", "parameters"]
    frame = pd.DataFrame(
        body, columns=columns, dtype=object
    )  # a whole number stays one beside what is missing
    return Table.of(
        "encoders", "Encoders", frame, {"parameters": formats.short_count}, texts=columns[1:3]
    )


def systems(facts: Facts) -> Table:
    """Make a row of each system that was measured: what it is and what it was trained with."""
    body = []
    for name in facts.systems:
        entry = facts.entries("systems").get(name, {})
        stage = facts.entries("stages").get(entry.get("stage", ""), {})
        body.append(
            [name, in_words("system", entry=entry), in_words("recipe", entry=entry, stage=stage)]
        )
    columns = ["system", "what it is", "training"]
    return Table("systems", "Systems", columns, body, texts=columns[1:])


def cost(facts: Facts) -> Section | None:
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
    seconds = by_step.iloc[:-1].set_index("step")["seconds"]
    large = seconds[seconds >= 0.01 * seconds.sum()]  # what takes next to nothing is one bar
    size, axis = (60.0, "minutes") if seconds.max() >= 120 else (1.0, "seconds")
    entries = [
        Row(str(step), formats.duration(time), bar=time / size, colour=1)
        for step, time in large.items()
    ]
    if rest := float(seconds.drop(large.index).sum()):
        entries.append(Row("all others", formats.duration(rest), bar=rest / size, colour=2))
    figure = rows(
        "cost", "Time by step", entries, low=0, high=max(entry.bar for entry in entries), axis=axis
    )
    return Section("cost", by_step.iloc[-1].to_dict(), tables, [figure])
