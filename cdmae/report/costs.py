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

from cdmae import formats
from cdmae.config.kinds import LEARNT_FROM, AnySystem
from cdmae.fields import parse
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
    milliseconds: float  # per evaluated query: the work of the jobs, without their start
    minutes: float  # of every training that the system depends on
    entries: float  # of a sparse passage's vector
    flops: float  # expected multiplications of a sparse query with a passage


@cache
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


def parts(facts: Facts, system: str) -> list[str]:
    """List the systems that provide the runs or vectors with which a system answers a query."""
    entry = facts.system(system)
    return parse(AnySystem, formats.without_folders(entry)).parts() if entry else []


@cache
def members(facts: Facts, system: str) -> list[str]:
    """List a system and all of its parts without duplicates."""
    found = [system]
    for part in parts(facts, system):
        found += [name for name in members(facts, part) if name not in found]
    return found


def _parameters(facts: Facts, system: str) -> float:
    kind = facts.kind(system)
    if kind.trained and system in facts.trained:
        return float(facts.trained[system].about.get("parameters", math.nan))
    # BM25 and a fusion have no network
    own = facts.system(system).get("model")
    unknown = kind.third_party or kind.trained
    return math.nan if own or not facts.system(system) or unknown else 0.0


def _megabytes(facts: Facts, system: str) -> float:
    kind = facts.kind(system)
    if kind.lexical:
        folder = facts.paths.get("indexes", {}).get(system)
        return _size(Path(folder)) / MEGABYTE if folder else math.nan
    if not kind.index:  # it searches no index of its own
        return math.nan if kind.third_party else 0.0
    shown = facts.paths.get("deciding")
    if not shown:
        return math.nan
    if system in facts.sparsity:
        return _sparsity(facts, system, "megabytes")
    stage = facts.entries("stages").get(facts.system(system).get("stage", ""), {})
    config = Path(facts.paths.get("trained", {}).get(system, ""), "config.json")
    if stage.get("head", "dense") != "dense" or not config.is_file():
        return math.nan
    # vectors are stored as float32 [P, D], which is their size but for the headers
    dimensions = read_json(config).get("hidden_size", math.nan)
    return facts.collections[shown[0]].passages * dimensions * FLOAT / MEGABYTE


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
    if facts.kind(system).index.startswith("vectors") and not facts.evaluation.keep_vectors:
        return math.nan  # the same job encodes the passages
    jobs = facts.benchmarks
    own = jobs[jobs["rule"].isin(ANSWERING) & (jobs["job"] == f"{system}.evaluated")]["work"]
    queries = sum(facts.queries(target) for target in facts.targets)
    return 1000 * float(own.sum(min_count=1)) / queries if queries else math.nan


def _training_seconds(facts: Facts, system: str) -> float:
    """Add up the seconds of all trainings behind a system; nan if one of them is not recorded."""
    needed = _needed(facts, system)
    encoders = dict.fromkeys(facts.encoder_of(name) for name in needed)
    seconds = 0.0
    for name in needed:
        kind = facts.kind(name)
        if kind.trained:
            trained = facts.trained.get(name)
            seconds += float(trained.about.get("seconds", math.nan)) if trained else math.nan
        elif kind.neural and not parts(facts, name):
            seconds = math.nan  # a published model or a run, which was trained elsewhere
    for encoder in filter(None, encoders):
        for name in _before(facts, encoder):
            if facts.entries("encoders").get(name, {}).get("objective") != "none":
                seconds += facts.pretraining_seconds(name)
    return seconds


def _needed(facts: Facts, system: str) -> list[str]:
    """List a system and every system that it reads or learns from, each once."""
    needed = [system]
    for name in needed:  # grows while it is read
        entry = facts.system(name)
        sources = [entry.get(key, "") for key in LEARNT_FROM]
        for source in filter(None, [*sources, *parts(facts, name)]):
            if source not in needed:
                needed.append(source)
    return needed


def _before(facts: Facts, encoder: str) -> Iterator[str]:
    """List an encoder and the earlier encoders from which its pre-training continues."""
    entry = facts.entries("encoders").get(encoder, {})
    yield entry.get("snapshot_of") or encoder
    if entry.get("after"):
        yield from _before(facts, entry["after"])
