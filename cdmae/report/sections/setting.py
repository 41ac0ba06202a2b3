"""What was run, and on what: machine, seed, collections with counts and versions, encoders, systems, the config."""

from __future__ import annotations

from functools import partial

import pandas as pd

from cdmae import formats
from cdmae.report.comparisons import shown
from cdmae.report.facts import Facts, Training
from cdmae.report.sections import LONG, Section
from cdmae.report.tables import Table
from cdmae.report.templates import phrase

in_words = partial(phrase, "setting.txt.j2")


def section(facts: Facts) -> Section | None:
    """Show collections and encoders as tables, and fold away what else one may want to look up."""
    tables = [collections(facts), encoders(facts), systems(facts)]
    section = Section("setting", {"facts": facts, "long": LONG}, tables)
    return section if section.tables else None


def collections(facts: Facts) -> Table:
    """Make a row of each collection: its size and what it was used for."""
    used = {entry.get("encoder") for entry in facts.entries("systems").values()}
    pretrained = [entry.get("collection") for name, entry in facts.entries("encoders").items() if name in used]
    finetuned = [entry.get("collection") for entry in facts.entries("stages").values()]
    rows = []
    for name, corpus in facts.collections.items():
        measured = [target for target in facts.targets if target.collection == name]
        uses = in_words(
            "uses", pretraining=name in pretrained, finetuning=name in finetuned,
            splits=[target.split for target in measured], zero_shot=bool(measured) and facts.zero_shot(measured[0]),
        )  # fmt: skip
        source = facts.entries("collections").get(name, {}).get("source", "")
        origin = in_words("source", source=source, versions=corpus.about.get("versions") or {})
        rows.append([name, corpus.passages, in_words("splits", corpus=corpus), uses, origin])
    columns = ["collection", "passages", "queries by split", "used for", "made from"]
    frame = pd.DataFrame(rows, columns=columns)
    return Table.of("collections", "Collections", frame, {"passages": formats.count}, texts=columns[2:])


def encoders(facts: Facts) -> Table:
    """Make a row of each encoder: where it starts and how it was pre-trained."""
    rows = []
    for name, entry in facts.entries("encoders").items():
        training, start = facts.encoders.get(name, Training()), entry.get("start", "")
        steps = training.steps if entry.get("objective") != "none" else 0
        rows.append([
            name,
            in_words("start", name=start, entry=facts.entries("starts").get(start, {})),
            in_words("pretraining", entry=entry, sigma=shown(entry.get("sigma"))),
            f"{formats.count(steps)} × {entry.get('batch')}" if steps else formats.NONE,
            training.about.get("parameters"),
        ])  # fmt: skip
    columns = ["encoder", "starts from", "pre-training", "steps × batch", "parameters"]
    frame = pd.DataFrame(rows, columns=columns, dtype=object)  # a whole number stays one beside what is missing
    return Table.of("encoders", "Encoders", frame, {"parameters": formats.short_count}, texts=columns[1:3])


def systems(facts: Facts) -> Table:
    """Make a row of each system that was measured: what it is and what it was trained with."""
    rows = []
    for name in facts.systems:
        entry = facts.entries("systems").get(name, {})
        stage = facts.entries("stages").get(entry.get("stage", ""), {})
        rows.append([name, in_words("system", entry=entry), in_words("recipe", entry=entry, stage=stage)])
    columns = ["system", "what it is", "training"]
    return Table("systems", "Systems", columns, rows, texts=columns[1:])
