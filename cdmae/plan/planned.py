"""The jobs of a run, and what determines their prices: config, collections and networks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cdmae.config import systems
from cdmae.plan.flops import Network
from cdmae.plan.sizes import Size, count, size

if TYPE_CHECKING:
    from pathlib import Path

    from cdmae.config.schema import Config


class Job(NamedTuple):
    """A job of a dry run: its rule, its wildcards joined by ``/``, its files, and its resources.

    due: whether Snakemake would run the job now.
    """

    rule: str
    name: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    threads: int = 1
    gpus: int = 0
    due: bool = True


def priced(config: Config, job: Job) -> Job:
    """Return a job under the name of its work: what it costs depends on the kind of its entry."""
    name, _, part = job.name.partition("/")
    mined = "" if part == "evaluated" else "/" + part.replace(".", "/", 1)
    kind = config.systems[name].kind if name in config.systems else ""
    if job.rule == "pretrain" and not config.encoders[name].pretrained:
        return job._replace(rule="untrained")
    if job.rule == "train":
        return job._replace(rule=f"train_{kind}")
    if job.rule == "encode":
        rules = {"external": "vectors_external", "head": "vectors_head"}
        return job._replace(rule=rules.get(kind, "vectors"))
    if job.rule in ("bm25", "search", "rerank", "fuse", "read_run"):
        of = {"bm25": "search_bm25", "external": "search_external", "feedback": "search_feedback"}
        mines = {"bm25": "mine_bm25", "external": "mine_external", "feedback": "mine_feedback"}
        mines |= {"fusion": "mine_fusion", "retriever": "mine", "head": "mine"}
        rules = mines if mined else of
        return job._replace(rule=rules.get(kind, job.rule), name=name + mined)
    return job


class Planned:
    """A config with the sizes of its collections, and the dimensions of its networks."""

    def __init__(self, config: Config) -> None:
        """Prepare to plan the jobs of a checked config."""
        self.config = config
        self._counted: dict[str, Size] = {}
        self._expected: dict[str, Size] = {}
        self._initial_networks: dict[str, Network] = {}
        self._external_networks: dict[str, Network] = {}

    @property
    def sizes(self) -> dict[str, Size]:
        """Map each collection to its size."""
        return {name: self.size(name) for name in self.config.collections}

    def size(self, collection: str) -> Size:
        """Return the size of a collection: counted if it exists, otherwise estimated by its source.

        Raises `InputError` if the size is unknown.
        """
        if collection not in self._counted:
            counted = count(self.config, collection)
            if counted:
                self._counted[collection] = counted
        if collection in self._counted:
            return self._counted[collection]
        if collection not in self._expected:
            self._expected[collection] = size(self.config, collection)
        return self._expected[collection]

    def initial_network(self, start: str) -> Network:
        """Return the network of an entry of `starts`."""
        if start not in self._initial_networks:
            self._initial_networks[start] = Network.of(self.config.starts[start])
        return self._initial_networks[start]

    def writer(self, collection: str) -> Network:
        """Return the network that writes texts for a collection's passages."""
        return self._external(self.config.collections[collection].settings.writer)

    def network(self, system: str) -> Network:
        """Return the network of a system; for feedback and heads, of the system that they use."""
        entry = self.config.systems[system]
        owner = entry.model_of(self.config, system)
        if owner and owner != system:
            return self.network(owner)
        model = entry.model
        if not model and not entry.encoder:
            return self.network(entry.parts()[0])
        if not model:
            return self.initial_network(systems.start_of(self.config, system))
        return self._external(model)

    def _external(self, model: str) -> Network:
        if model not in self._external_networks:
            self._external_networks[model] = Network.read(model)
        return self._external_networks[model]

    def queries(self, targets: list[tuple[str, str]]) -> list[int]:
        """Count the queries of each (collection, split); 0 if the source does not know them."""
        return [self.size(collection).queries.get(split, 0) for collection, split in targets]

    @cached_property
    def evaluated(self) -> list[int]:
        """The number of queries of every evaluated (collection, split)."""
        return self.queries(systems.targets(self.config))

    @property
    def largest_run(self) -> float:
        """The number of passages in the largest run of the evaluation."""
        return self.config.evaluation.depth * max(self.evaluated, default=0)

    def downloads(self, collection: str) -> dict[Path, float]:
        """Map the files that a source stores outside the results folder to their sizes in bytes."""
        return self.config.collections[collection].settings.downloads()
