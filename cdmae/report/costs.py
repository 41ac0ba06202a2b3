"""Gather each system's cost from the records of its jobs: size, index, time and training.

Nothing is estimated: a figure that no record contains is nan, and the page reports it as not
measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cdmae.config import systems
from cdmae.config.kinds import LEARNT_FROM
from cdmae.files import read_json
from cdmae.report.facts import Facts
from cdmae.report.records import Training, work

# the rules that answer evaluated queries, of which a system has one
ANSWERING = ("bm25", "search", "rerank", "fuse")
MEGABYTE = 1e6
FLOAT = 4  # bytes per dimension of a stored vector


class Cost(NamedTuple):
    """The cost of a system, including all of its parts; nan where it was not measured."""

    parameters: float  # of all networks that a query passes
    megabytes: float  # of the indexes that are searched, for the main collection
    milliseconds: float  # per evaluated query: the searches, without start, index and encoding
    minutes: float  # of every training that the system depends on
    entries: float  # of a sparse passage's vector
    flops: float  # expected multiplications of a sparse query with a passage


def cost(facts: Facts, system: str) -> Cost:
    """Add up the cost of a system and of all systems that provide its input runs."""
    together = _with_sources(facts, system, trainings=False)
    return Cost(
        parameters=sum(_parameters(facts, name) for name in together),
        megabytes=sum(_megabytes(facts, name) for name in together),
        milliseconds=sum(_milliseconds(facts, name) for name in together),
        minutes=_training_seconds(facts, system) / 60,
        entries=_sparsity(facts, system, "passage_entries"),
        flops=_sparsity(facts, system, "flops"),
    )


def _with_sources(facts: Facts, system: str, *, trainings: bool) -> list[str]:
    """List a system and, without duplicates, the systems of which it reads results.

    trainings: whether also for its training, or only to answer queries.
    """
    found = [system]
    for name in found:  # grows while it is read
        entry = facts.entry(name)
        sources = entry.parts()
        if trainings:
            sources = [*sources, *(getattr(entry, key, "") for key in LEARNT_FROM)]
        found += [other for other in dict.fromkeys(sources) if other and other not in found]
    return found


def _parameters(facts: Facts, system: str) -> float:
    entry = facts.entry(system)
    if system in facts.trained:
        return float(facts.trained[system].about.get("parameters", math.nan))
    # BM25 and a fusion have no network
    return math.nan if entry.model or entry.kind == "run" or entry.trained else 0.0


def _megabytes(facts: Facts, system: str) -> float:
    entry = facts.entry(system)
    collection = facts.deciding.collection
    if entry.kind == "bm25":
        folder = facts.at("bm25", system=system, collection=collection)
        return _size(folder) / MEGABYTE if folder.exists() else math.nan
    if not entry.encoded_by:  # it searches no index of its own
        return math.nan if entry.kind == "run" else 0.0
    if system in facts.sparsity:
        return _sparsity(facts, system, "megabytes")
    config = facts.at("trained", system=system) / "config.json"
    if not entry.trained or entry.vectors(facts.config) != "dense" or not config.is_file():
        return math.nan
    # vectors are stored as float32 [P, D], which is their size but for the headers
    dimensions = read_json(config).get("hidden_size", math.nan)
    return facts.collections[collection].passages * dimensions * FLOAT / MEGABYTE


def _sparsity(facts: Facts, system: str, quantity: str) -> float:
    """Look up a sparse system's vectors on the deciding collection; nan for other systems."""
    for row in facts.sparsity.get(system, []):
        if row["collection"] == facts.deciding.collection:
            return float(row[quantity])
    return math.nan


def _size(folder: Path) -> int:
    """Add up the bytes of a folder's files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _milliseconds(facts: Facts, system: str) -> float:
    logs = [facts.at("logs") / rule / f"{system}.evaluated.log" for rule in ANSWERING]
    recorded = [log for log in logs if log.exists()]
    seconds = work(recorded[0]) if recorded else math.nan
    return 1000 * seconds / sum(map(facts.queries, facts.targets))


def _training_seconds(facts: Facts, system: str) -> float:
    """Add up the seconds of all trainings behind a system; nan if one of them is not recorded."""
    seconds = 0.0
    encoders = []
    for name in _with_sources(facts, system, trainings=True):
        entry = facts.entry(name)
        if entry.trained:
            encoders += [entry.encoder, *systems.before(facts.config, entry.encoder)]
            seconds += _seconds(facts.trained, name)
        elif entry.kind != "bm25" and not entry.parts():
            return math.nan  # a published model or a run, which was trained elsewhere
    pretrainings: dict[str, float] = {}
    for name in encoders:
        if facts.config.encoders[name].pretrained:
            pretrainings[name] = _seconds(facts.encoders, name)
    return seconds + sum(pretrainings.values())


def _seconds(trainings: Mapping[str, Training], name: str) -> float:
    """Return the recorded duration of a training; nan without a record."""
    about = trainings[name].about if name in trainings else {}
    return float(about.get("seconds", math.nan))
