"""What a result descends from: one hash over settings, code and sources of a job and of all jobs before it.

A training keeps what it resumes from in a folder named by this hash: after a change of anything that its result
depends on it starts afresh, and never goes on from a state that the change has made stale. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from cdmae.fingerprint import fingerprint
from cdmae.graph import Graph
from cdmae.jobs import Job

TRAININGS = ("pretrain", "train_retriever", "train_reranker")  # the rules that keep a state
# Rules that run the script of another.
SHARED = {"mine": "search", "mine_external": "search_external"}


def script(rule: str) -> str:
    """The script of a rule: the one of its name, unless it shares another's."""
    return f"workflow/scripts/{SHARED.get(rule, rule)}.py"


class Lineage:
    """The lineages of the jobs of a graph."""

    def __init__(self, graph: Graph) -> None:
        """Read the plan once."""
        self.graph = graph
        self._makes = {path: job for job in graph.jobs() for path in job.outputs}
        self._known: dict[tuple[str, str], str] = {}

    def of(self, job: Job) -> str:
        """A short hash of everything that the result of `job` depends on."""
        key = (job.rule, job.name)
        if key not in self._known:
            facts = [job.rule, job.name, job.params, fingerprint(script(job.rule), job.plugins)]
            facts.append({name: self._source(paths) for name, paths in job.inputs.items()})
            text = json.dumps(facts, sort_keys=True)
            self._known[key] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._known[key]

    def _source(self, paths: str | list[str]) -> list[str]:
        """What inputs descend from: the jobs that make them, or size and time of files that were there before."""
        found = []
        for path in [paths] if isinstance(paths, str) else paths:
            if path in self._makes:
                found.append(self.of(self._makes[path]))
            elif os.path.exists(path):
                status = os.stat(path)
                found.append(f"{path} {status.st_size} {status.st_mtime_ns}")
            else:
                found.append(path)
        return found

    def states(self) -> dict[str, Path]:
        """The state folder of every training of the plan, by ``rule/name``."""
        jobs = (job for job in self.graph.jobs() if job.rule in TRAININGS)
        return {f"{job.rule}/{job.name}": Path(self.state(job)) for job in jobs}

    def state(self, job: Job) -> str:
        """Where a training keeps what it resumes from."""
        return self.graph.state(job.rule, job.name, self.of(job))


def adopt(lineage: Lineage) -> list[str]:
    """Give every training without a state of its own the newest older one, and tell what was done, a line each.

    Meant for an edit that leaves the mathematics alone, such as a renamed variable. Only the user can know that.
    """
    done = []
    for name, folder in lineage.states().items():
        others = [each for each in folder.parent.glob("*") if each != folder and any(each.glob("step-*.pt"))]
        if not others or any(folder.glob("step-*.pt")):
            continue
        newest = max(others, key=lambda each: max(path.stat().st_mtime_ns for path in each.glob("step-*.pt")))
        folder.mkdir(parents=True, exist_ok=True)
        for path in [*newest.glob("step-*.pt"), *newest.glob("*.tsv"), *newest.glob("snapshots/*")]:
            place = folder / path.relative_to(newest)
            if not place.is_dir():
                place.parent.mkdir(exist_ok=True)
                path.replace(place)
        step = int(max(path.name for path in folder.glob("step-*.pt")).split(".")[0].removeprefix("step-"))
        done.append(f"{name} goes on from step {step:,} of the state {newest.name}")
    return done
