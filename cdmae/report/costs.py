"""Gather each system's cost from the records of its jobs: size, index, time and training.

Nothing is estimated: a figure that no record contains is nan, and the page reports it as not
measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cdmae.config.kinds import LEARNT_FROM
from cdmae.files import read_json
from cdmae.report.facts import Facts

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
    together = members(facts, system)
    return Cost(
        parameters=sum(_parameters(facts, name) for name in together),
        megabytes=sum(_megabytes(facts, name) for name in together),
        milliseconds=sum(_milliseconds(facts, name) for name in together),
        minutes=_training_seconds(facts, system) / 60,
        entries=_sparsity(facts, system, "passage_entries"),
        flops=_sparsity(facts, system, "flops"),
    )


@cache
def members(facts: Facts, system: str) -> list[str]:
    """List a system and all of its parts without duplicates."""
    found = [system]
    for part in facts.kind(system).parts():
        found += [name for name in members(facts, part) if name not in found]
    return found


def _parameters(facts: Facts, system: str) -> float:
    kind = facts.kind(system)
    if system in facts.trained:
        return float(facts.trained[system].about.get("parameters", math.nan))
    # BM25 and a fusion have no network
    return math.nan if kind.model or kind.third_party or kind.trained else 0.0


def _megabytes(facts: Facts, system: str) -> float:
    kind = facts.kind(system)
    if kind.lexical:
        folder = facts.given.get("indexes", {}).get(system)
        return _size(Path(folder)) / MEGABYTE if folder else math.nan
    if not kind.index:  # it searches no index of its own
        return math.nan if kind.third_party else 0.0
    if system in facts.sparsity:
        return _sparsity(facts, system, "megabytes")
    stage = facts.entries("stages").get(kind.stage, {})
    config = Path(facts.given.get("trained", {}).get(system, ""), "config.json")
    deciding = facts.given.get("deciding")
    if not deciding or stage.get("head", "dense") != "dense" or not config.is_file():
        return math.nan
    # vectors are stored as float32 [P, D], which is their size but for the headers
    dimensions = read_json(config).get("hidden_size", math.nan)
    return facts.collections[deciding[0]].passages * dimensions * FLOAT / MEGABYTE


def _sparsity(facts: Facts, system: str, quantity: str) -> float:
    """Look up a sparse system's vectors on the deciding collection; nan for other systems."""
    for row in facts.sparsity.get(system, []):
        if facts.deciding and row["collection"] == facts.deciding.collection:
            return float(row[quantity])
    return math.nan


def _size(folder: Path) -> int:
    """Add up the bytes of a folder's files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _milliseconds(facts: Facts, system: str) -> float:
    jobs = facts.benchmarks
    own = jobs[jobs["rule"].isin(ANSWERING) & (jobs["job"] == f"{system}.evaluated")]["work"]
    queries = sum(map(facts.queries, facts.targets))
    return 1000 * float(own.sum(min_count=1)) / queries


def _training_seconds(facts: Facts, system: str) -> float:
    """Add up the seconds of all trainings behind a system; nan if one of them is not recorded."""
    needed = [system]
    for name in needed:  # grows while it is read
        kind = facts.kind(name)
        learnt_from = [getattr(kind, key, "") for key in LEARNT_FROM]
        for source in filter(None, [*learnt_from, *kind.parts()]):
            if source not in needed:
                needed.append(source)
    seconds = 0.0
    encoders = {}
    for name in needed:
        kind = facts.kind(name)
        encoders |= dict.fromkeys(_before(facts, kind.encoder) if kind.encoder else ())
        if kind.trained:
            about = facts.trained[name].about if name in facts.trained else {}
            seconds += float(about.get("seconds", math.nan))
        elif kind.neural and not kind.parts():
            seconds = math.nan  # a published model or a run, which was trained elsewhere
    for encoder in encoders:
        if facts.entries("encoders").get(encoder, {}).get("objective") != "none":
            seconds += facts.pretraining_seconds(encoder)
    return seconds


def _before(facts: Facts, encoder: str) -> Iterator[str]:
    """List an encoder and the earlier encoders from which its pre-training continues."""
    entry = facts.entries("encoders").get(encoder, {})
    yield encoder
    if entry.get("after"):
        yield from _before(facts, entry["after"])
