"""What was run, and on what: machine, seed, collections with counts and versions, encoders, systems, the config."""

from __future__ import annotations

from typing import Any

import yaml

from cdmae import formats
from cdmae.report.comparisons import shown
from cdmae.report.facts import Corpus, Facts
from cdmae.report.markup import Markup, escape, fill, tag
from cdmae.report.sections import LONG, Section, folded, paragraphs, seeds
from cdmae.report.tables import Cell, Table

KINDS = {"whole_word": "whole words, uniform", "uniform": "word-pieces, uniform", "importance": "by importance"}


def section(facts: Facts) -> Section | None:
    """Collections and encoders as tables; what else one may want to look up is folded away."""
    tables = [table for table in (collections(facts), encoders(facts), systems(facts)) if table.rows]
    if not tables:
        return None
    body = [paragraphs(_lead(facts))]
    body += [folded(table) if table.name == "systems" or len(table.rows) > LONG else table.html() for table in tables]
    body += [_about(facts), _config(facts), _versions(facts)]
    return Section("setting", "What was run", "What was run", Markup("".join(body)), tables=tables)


def _lead(facts: Facts) -> str:
    """When, where, and from which seed."""
    machine = [f"no {key}" if each == "none" else each for key, each in facts.machine.items()]
    parts = [f"Started {facts.started}."] if facts.started else []
    parts += [f"Machine: {', '.join(machine)}."] if machine else []
    return " ".join([*parts, f"Everything random follows from {seeds(facts)}."])


def collections(facts: Facts) -> Table:
    """One row per collection: its size and what it was used for."""
    rows = []
    for name, corpus in facts.collections.items():
        splits = [_split(corpus, split) for split in corpus.queries]
        passages = Cell(formats.count(corpus.passages), corpus.passages)
        rows.append([name, passages, "; ".join(splits), _role(facts, name), _source(facts, name)])
    columns = ["collection", "passages", "queries by split", "used for", "made from"]
    texts = columns[2:]
    return Table("collections", "Collections", columns, rows, texts=texts)


def encoders(facts: Facts) -> Table:
    """One row per encoder: where it starts and how it was pre-trained."""
    rows = []
    for name, entry in facts.entries("encoders").items():
        training = facts.encoders.get(name)
        if entry.get("objective") == "none":
            steps, how = formats.NONE, "not pre-trained"
        else:
            taken = training.steps if training else 0
            steps = f"{formats.count(taken)} \N{MULTIPLICATION SIGN} {entry.get('batch')}" if taken else formats.NONE
            how = _masking(entry) + f", on {entry.get('collection')}"
        size = training.about.get("parameters") if training else None
        parameters = formats.short_count(size) if isinstance(size, (int, float)) else formats.NONE
        rows.append([name, _start(facts, entry.get("start", "")), how, Cell(steps), Cell(parameters, size)])
    columns = ["encoder", "starts from", "pre-training", "steps \N{MULTIPLICATION SIGN} batch", "parameters"]
    return Table("encoders", "Encoders", columns, rows, texts=["starts from", "pre-training"])


def systems(facts: Facts) -> Table:
    """One row per system that was measured: what it is and what it was trained with."""
    rows = [[name, describe(facts, name), _recipe(facts, name)] for name in facts.systems]
    columns = ["system", "what it is", "training"]
    return Table("systems", "Systems", columns, rows, texts=columns[1:])


def describe(facts: Facts, name: str) -> str:
    """A system in words."""
    entry = facts.entries("systems").get(name, {})
    kind = entry.get("kind", "")
    if kind == "bm25":
        return f"BM25, k1 {entry.get('k1')}, b {entry.get('b')}"
    if kind == "fusion":
        return f"reciprocal rank fusion of {formats.listed(list(entry.get('of', [])))}"
    if kind == "external":
        return f"retriever from outside: {entry.get('model')}"
    if kind == "reranker":
        return (
            f"reranker from {entry.get('encoder')}, orders the best {entry.get('depth')} of {entry.get('reranks')} anew"
        )
    return f"retriever from {entry.get('encoder')}" if kind else ""


def _recipe(facts: Facts, name: str) -> str:
    entry = facts.entries("systems").get(name, {})
    stage = facts.entries("stages").get(entry.get("stage", ""), {})
    if not stage:
        return formats.NONE
    epochs = "1 epoch" if stage.get("epochs") == 1 else f"{stage.get('epochs'):g} epochs"
    text = (
        f"{entry['stage']}: {stage.get('queries')} queries \N{MULTIPLICATION SIGN} {stage.get('group')}, {epochs}, "
        f"negatives of {entry.get('negatives')} (best {stage.get('depth')})"
    )
    if entry.get("teacher"):
        text += f"; teacher {entry['teacher']}, \N{GREEK SMALL LETTER ALPHA} {stage.get('alpha')}"
    return text


def _source(facts: Facts, name: str) -> str:
    """The source of a collection, and the versions of what it was made from."""
    source = facts.entries("collections").get(name, {}).get("source", "")
    versions = facts.collections[name].about.get("versions") or {}
    return ": ".join(filter(None, (source, ", ".join(f"{key} {each}" for key, each in versions.items()))))


def _split(corpus: Corpus, split: str) -> str:
    """The queries of a split, as far as they are judged, and how many passages are judged for each."""
    judged, queries = corpus.judged[split], corpus.queries[split]
    some = "" if judged == queries else f" of {formats.count(queries)}"
    return f"{split} {formats.count(judged)}{some} ({corpus.per_query(split):.3g} judged each)"


def _role(facts: Facts, name: str) -> str:
    used = {each.get("encoder") for each in facts.entries("systems").values()}
    roles = []
    if any(each.get("collection") == name for key, each in facts.entries("encoders").items() if key in used):
        roles.append("pre-training")
    if any(each.get("collection") == name for each in facts.entries("stages").values()):
        roles.append("fine-tuning")
    measured = [target for target in facts.targets if target.collection == name]
    if measured:
        kind = "zero-shot test" if facts.zero_shot(measured[0]) else "test"
        roles.append(f"{kind} ({formats.listed([target.split for target in measured])})")
    return ", ".join(roles) or formats.NONE


def _start(facts: Facts, name: str) -> str:
    entry = facts.entries("starts").get(name, {})
    if entry.get("checkpoint"):
        return str(entry["checkpoint"])
    if not entry:
        return name
    return (
        f"random: {entry['layers']} layers of {entry['hidden']}, {formats.count(entry['vocabulary'])} word-pieces "
        f"from {entry.get('collection')}"
    )


def _masking(entry: dict[str, Any]) -> str:
    sides = []
    for side, verb in (("decoder", "masks "), ("encoder", "")):
        name, ratio = entry.get(f"{side}_masking"), entry.get(f"{side}_ratio")
        if name and ratio is not None:  # an objective without decoder has no masks for one
            sides.append(f"{side} {verb}{formats.percent(ratio)} {KINDS.get(name, name.replace('_', ' '))}")
            if name == "importance":
                sides[-1] += f", \N{GREEK SMALL LETTER SIGMA} {shown(entry.get('sigma'))}"
    return "; ".join([str(entry.get("objective")), *sides])


def _about(facts: Facts) -> Markup:
    """What the sources of the collections say of themselves, folded away."""
    parts = [(tag("h4", name), nested(corpus.about)) for name, corpus in facts.collections.items() if corpus.about]
    return tag("details", tag("summary", "Where the collections come from"), parts) if parts else Markup("")


def _config(facts: Facts) -> Markup:
    """The whole config with its defaults, as YAML."""
    if not facts.config:
        return Markup("")
    text = yaml.safe_dump(facts.config, sort_keys=False, allow_unicode=True, width=1000)
    return tag("details", tag("summary", "The whole config"), tag("pre", text, tabindex="0"))


def _versions(facts: Facts) -> Markup:
    if not facts.versions:
        return Markup("")
    return tag("details", tag("summary", "Versions of the software"), nested(facts.versions))


def nested(value: Any) -> Markup:
    """JSON values as definition lists: scalars in a row, lists of scalars joined."""
    if isinstance(value, dict):
        pairs = [
            tag("div", tag("dt", str(key).replace("_", " ")), tag("dd", nested(each))) for key, each in value.items()
        ]
        return tag("dl", pairs, class_="facts")
    if isinstance(value, list):
        if any(isinstance(each, (dict, list)) for each in value):
            return tag("ul", [tag("li", nested(each)) for each in value])
        return escape(", ".join(str(each) for each in value) or formats.NONE)
    if isinstance(value, bool) or value is None:
        return escape({True: "yes", False: "no", None: formats.NONE}[value])
    return fill("{value}", value=f"{value:,}" if isinstance(value, (int, float)) else value)
