"""Which jobs a config has, and which of them a target asks for: a whole run, a rule, a table, a path."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.errors import InputError
from cdmae.jobs import EXHIBITS, FIGURES, MINE, RULES, SEARCH, TABLES, Job

if TYPE_CHECKING:
    from cdmae.config.schema import System
    from cdmae.graph import Graph

ROOT = Path(__file__).resolve().parent.parent
ALL = "all"  # the target of a whole run
ALONE = ("report", "latency")  # rules without wildcards, which can be targets


def ordered(graph: Graph, targets: Sequence[str] = ()) -> list[Job]:
    """The jobs that a whole run needs, or some targets, each after those whose outputs it reads.

    Targets are what ``./run`` takes: ``all``, a rule without wildcards, a table or figure, or a path. Raises
    `InputError` for one that no job makes.
    """
    makes = {path: job for job in _possible(graph) for path in job.outputs}
    found: dict[tuple[str, str], Job] = {}

    def visit(job: Job) -> None:
        if (job.rule, job.name) in found:
            return
        for path in job.reads():
            if path in makes:
                visit(makes[path])
        found[job.rule, job.name] = job

    for target in targets or [ALL]:
        for job in _making(graph, target, makes):
            visit(job)
    return list(found.values())


def _making(graph: Graph, target: str, makes: dict[str, Job]) -> list[Job]:
    """The jobs that a target asks for; `makes`: those that may be asked for by a path."""
    if target == ALL:
        return [makes[path] for path in graph.needed()]
    if target in ALONE:
        return [graph.job(target)]
    path = check_target(graph, target)
    name = Path(path).stem if path.startswith(f"{graph.exhibits()}/") else path
    if name in (*TABLES, *FIGURES):
        return [graph.job("table" if name in TABLES else "figure", name)]
    return [makes[path]]


def check_target(graph: Graph, target: str) -> str:
    """A target that is no rule, as the graph names it; raises `InputError` where no job makes it."""
    path = os.path.normpath(target).removeprefix(f"{ROOT}/")
    known = [*paths(graph), *TABLES, *FIGURES]
    if path in known:
        return path
    made = [job.outputs[0] for job in _possible(graph) if job.rule == path]
    made += [each for each in known if each.startswith(f"{path}/")]
    if made:
        what = "rule that makes" if path in RULES else "folder of"
        raise InputError(f"{target} is a {what} several results; allowed: one of them, such as {made[0]}")
    near = difflib.get_close_matches(path, [*known, ALL, *ALONE], n=1)
    raise InputError(
        f"{target} is nothing that this config makes; "
        + (f"did you mean {near[0]}?" if near else "./run -n lists what it makes")
    )


def paths(graph: Graph) -> list[str]:
    """Every path that can be asked for: what all jobs write, those of a whole run and those on request."""
    found = [path for job in _possible(graph) for path in job.outputs]
    for names, forms in EXHIBITS.items():
        found += [f"{graph.exhibits()}/{name}.{form}" for name in names for form in forms]
    return list(dict.fromkeys(found))


def _possible(graph: Graph) -> Iterator[Job]:
    """All jobs but tables and figures, of which some cannot be made from every config."""
    config = graph.config
    for start in config.starts:
        yield graph.job("tokenizer", start)
    for name in config.collections:
        yield graph.job("collection", name)
        yield graph.job("index_bm25", name)
        for start in config.starts:
            yield graph.job("tokens", start, name)
            for entry in config.importance:
                yield graph.job("ngrams", entry, start, name)
                yield graph.job("importance", entry, start, name)
    for encoder, entry in config.encoders.items():
        yield graph.job("snapshot" if entry.snapshot_of else "pretrain", encoder)
    for encoder in graph.masked_by_importance():
        yield graph.job("masked_terms", encoder)
    for mined in graph.mined():
        yield graph.job(MINE[config.systems[mined[0]].kind], *mined)
    for name, system in config.systems.items():
        yield from _possible_of(graph, name, system)
        for target in graph.targets():
            yield graph.job("export", name, *target)
    yield graph.job("report")
    yield graph.job("latency")


def _possible_of(graph: Graph, name: str, system: System) -> Iterator[Job]:
    if system.kind in ("retriever", "reranker"):
        yield graph.job(f"train_{system.kind}", name)
        yield graph.job("release", name)
    if system.teacher and graph.taught_like(name) == name:
        yield graph.job("teacher", name)
    if system.kind in ("retriever", "external"):
        rule = "vectors" if system.kind == "retriever" else "vectors_external"
        for searched in graph.searched(name):
            yield graph.job(rule, name, searched)
    yield graph.job(SEARCH[system.kind], name)
    yield graph.job("measures", name)
