"""The workflow's graph: where every artefact lies, which job makes it and from what. Paths and names only.

The config's names are the edges. The rules ask here for their inputs, the report for what there is to show, and
`Graph.jobs` reads the whole plan without running Snakemake. Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from cdmae import jobs, making
from cdmae.config import seeds
from cdmae.config.schema import Config

COLLECTION_FILES = ("passages.parquet", "queries.parquet", "qrels.parquet", "about.json")
TRAINED = ("retriever", "reranker")  # the kinds of system that have a model of their own


class Graph:
    """Paths, targets and jobs of a config."""

    def __init__(self, config: Config) -> None:
        """Take a checked config."""
        self.config = config
        self.results = config.results.rstrip("/") or "/"

    # --- where things lie ---------------------------------------------------------------------------------------------

    def path(self, *parts: str) -> str:
        """A path below the results folder."""
        return "/".join((self.results, *parts))

    def collection(self, collection: str) -> str:
        """The folder of a collection."""
        return self.path("collections", collection)

    def collection_files(self, collection: str) -> list[str]:
        """The four files of a collection."""
        return [f"{self.collection(collection)}/{name}" for name in COLLECTION_FILES]

    def about(self, collection: str) -> str:
        """What a collection was made from: versions and counts."""
        return f"{self.collection(collection)}/about.json"

    def passages(self, collection: str) -> str:
        """The passages of a collection: what is enough for everything that needs no queries."""
        return f"{self.collection(collection)}/passages.parquet"

    def queries(self, collection: str) -> str:
        """The queries of a collection."""
        return f"{self.collection(collection)}/queries.parquet"

    def qrels(self, collection: str) -> str:
        """The judgments of a collection."""
        return f"{self.collection(collection)}/qrels.parquet"

    def tokenizer(self, start: str) -> str:
        """The tokenizer of a start: a folder."""
        return self.path("tokenizers", start)

    def tokens(self, start: str, collection: str) -> str:
        """A collection in the word-pieces of a start: a folder."""
        return self.path("tokens", start, collection)

    def ngrams(self, importance: str, start: str, collection: str) -> str:
        """The n-gram counts that an importance is estimated from: a folder."""
        return self.path("ngrams", importance, start, collection)

    def importance(self, importance: str, start: str, collection: str) -> str:
        """The importance of every word-piece, and the table that scores new text: a folder."""
        return self.path("importance", importance, start, collection)

    def encoder(self, encoder: str) -> str:
        """A pre-trained encoder: a folder."""
        return self.path("encoders", encoder)

    def masked_terms(self, encoder: str) -> str:
        """What the masks of an encoder fall on: a JSON file."""
        return self.path("masked_terms", f"{encoder}.json")

    def index(self, collection: str) -> str:
        """The BM25 index of a collection: a folder."""
        return self.path("bm25", collection)

    def negatives(self, system: str, collection: str, split: str) -> str:
        """The run of a system over queries that are trained on."""
        return self.path("negatives", f"{system}.{collection}.{split}.parquet")

    def teacher(self, student: str) -> str:
        """The reranker's scores of a student's candidates, positives included: a run."""
        return self.path("teachers", f"{student}.parquet")

    def trained(self, system: str) -> str:
        """What the trainer of a system writes: a folder."""
        return self.path("trained", system)

    def model(self, system: str) -> str:
        """The released model of a system, with its card: a folder."""
        return self.path("models", system)

    def vectors(self, system: str, collection: str) -> str:
        """The vectors of a collection's passages: a folder."""
        return self.path("vectors", system, collection)

    def run(self, system: str, collection: str, split: str) -> str:
        """The run of a system over queries that are evaluated."""
        return self.path("runs", system, f"{collection}.{split}.parquet")

    def runs(self, system: str) -> list[str]:
        """The runs of a system, one per target of the evaluation."""
        return [self.run(system, collection, split) for collection, split in self.targets()]

    def measures(self, system: str) -> str:
        """The measures of a system, per query: a tab-separated file."""
        return self.path("measures", f"{system}.tsv")

    def report(self) -> str:
        """The report: a folder."""
        return self.path("report")

    def page(self) -> str:
        """The page of the report."""
        return f"{self.report()}/index.html"

    def latency(self) -> str:
        """What masking a batch costs: a JSON file."""
        return self.path("latency.json")

    def exhibits(self) -> str:
        """Where the paper's tables and figures lie that were asked for: a folder."""
        return self.path("tables")

    def state(self, *parts: str) -> str:
        """Where a training keeps what it resumes from: a folder that no rule declares."""
        return self.path("state", *parts)

    # --- what there is ------------------------------------------------------------------------------------------------

    def targets(self) -> list[tuple[str, str]]:
        """The (collection, split) pairs of the evaluation, in the order of the config."""
        return [(name, split) for name, splits in self.config.evaluation.collections.items() for split in splits]

    def evaluated(self) -> list[str]:
        """The collections of the evaluation."""
        return list(self.config.evaluation.collections)

    def lengths(self, collections: list[str]) -> list[int]:
        """Where systems cut the texts of some collections; 0: at their own lengths."""
        return [self.config.evaluation.lengths.get(each, 0) for each in collections]

    def systems(self, *kinds: str) -> list[str]:
        """The systems of some kinds, in the order of the config."""
        return [name for name, system in self.config.systems.items() if system.kind in kinds]

    def start_of(self, system: str) -> str:
        """The start whose word-pieces a trained system reads."""
        return self.config.encoders[self.config.systems[system].encoder].start

    def trains_on(self, system: str) -> tuple[str, str]:
        """The (collection, split) that a trained system is trained on."""
        stage = self.config.stages[self.config.systems[system].stage]
        return stage.collection, stage.split

    def negatives_of(self, system: str) -> str:
        """The run that gives a trained system its negatives."""
        return self.negatives(self.config.systems[system].negatives, *self.trains_on(system))

    def taught_like(self, student: str) -> str:
        """The first student that draws the same candidates for the same teacher, whose scores serve all of them."""
        return self._students[self._drawn(student)]

    @cached_property
    def _students(self) -> dict[tuple[Any, ...], str]:
        students = [name for name in self.systems("retriever") if self.config.systems[name].teacher]
        return {self._drawn(name): name for name in reversed(students)}

    def _drawn(self, student: str) -> tuple[Any, ...]:
        """What a teacher's scores depend on: which teacher, and which candidates."""
        system = self.config.systems[student]
        stage = self.config.stages[system.stage]
        drawn = (stage.depth, stage.group, stage.random_negatives, stage.epochs, stage.seed)
        return (system.teacher, self.negatives_of(student), *drawn)

    def batches(self, collection: str) -> dict[str, list[Any]]:
        """What stages take of a collection per step: ``stages.x`` to its split and its number of queries."""
        stages = {name: self.config.stages[name] for name in seeds.first(self.config.stages)}
        used = {name: each for name, each in stages.items() if each.collection == collection}
        return {f"stages.{name}": [each.split, each.queries] for name, each in used.items()}

    def mined(self) -> dict[tuple[str, str, str], int]:
        """The runs over training queries: (system, collection, split) to depth, the greatest that a training asks."""
        found: dict[tuple[str, str, str], int] = {}
        for name in self.systems(*TRAINED):
            system = self.config.systems[name]
            key = (system.negatives, *self.trains_on(name))
            found[key] = max(found.get(key, 0), self.config.stages[system.stage].depth)
        return found

    def searched(self, system: str) -> list[str]:
        """The collections that a system searches: those of the evaluation and those it is mined on."""
        return list(dict.fromkeys([*self.evaluated(), *(key[1] for key in self.mined() if key[0] == system)]))

    def masked_by_importance(self) -> list[str]:
        """The encoders with an importance-aware mask, which the report shows, of the first seed."""
        return [name for name in self.trained_encoders() if self.config.encoders[name].masked_by_importance]

    def trained_encoders(self) -> list[str]:
        """The encoders that the report shows, of the first seed; snapshots are parts of the trainings of others."""
        return [name for name in seeds.first(self.config.encoders) if not self.config.encoders[name].snapshot_of]

    def snapshots(self, encoder: str) -> list[int]:
        """The steps of an encoder's training that others are snapshots of, ascending."""
        return sorted({each.take_step for each in self.config.encoders.values() if each.snapshot_of == encoder})

    def before(self, encoder: str) -> list[str]:
        """The encoders that one goes on from, the last one first."""
        name = self.config.encoders[encoder].after
        return [name, *self.before(name)] if name else []

    def importance_of(self, encoder: str) -> str:
        """The importance that an encoder's masks read, or its n-grams where they read these alone: a folder."""
        found = self.config.encoders[encoder]
        path = self.importance if found.masked_by_importance else self.ngrams
        return path(found.importance, found.start, found.collection)

    def facts(self) -> dict[str, Any]:
        """What the report is made from, by name; its rule adds versions and times.

        Measures are those of every seed, what else it shows of a training is of the first.
        """
        shown, retrievers = self.masked_by_importance(), seeds.first(self.systems("retriever"))
        return {
            "config": self.config.values(),
            "collections": {name: self.collection(name) for name in self.config.collections},
            "measures": {name: self.measures(name) for name in self.config.systems},
            "encoders": {name: self.encoder(name) for name in self.trained_encoders()},
            "trained": {name: self.trained(name) for name in seeds.first(self.systems(*TRAINED))},
            "masked_terms": {name: self.masked_terms(name) for name in shown},
            "importance": {name: self.importance_of(name) for name in shown},
            "benchmarks": self.path("benchmarks"),
            "mined": {name: self.negatives_of(name) for name in retrievers},
            "teachers": {
                name: self.teacher(self.taught_like(name)) for name in retrievers if self.config.systems[name].teacher
            },
            "runs": {name: self.run(name, *self.shown()) for name in [*self.systems("bm25"), *retrievers]},
            "shown": self.shown(),
        }

    def shown(self) -> list[str]:
        """The (collection, split) whose queries the report shows one by one: the first that is no zero-shot one."""
        trained = {self.trains_on(name)[0] for name in self.systems(*TRAINED)}
        found = [target for target in self.targets() if target[0] in trained] or self.targets()
        return list(found[0]) if found else []

    def exhibit(self, name: str) -> dict[str, Any]:
        """What one of the paper's tables and figures is made from, as in `facts`; raises `InputError` where it cannot.

        The report knows what it selects; importing that takes a second, which only those who ask for one wait for.
        """
        from cdmae.report.paper.exhibits import wanted

        found = wanted(name, self.config.values())
        facts = self.facts() if found.everything else {
            "config": self.config.values(),
            "collections": {name: self.collection(name) for name in (self.evaluated() if found.systems else [])},
            "measures": {
                name: self.measures(name) for name in self.config.systems if seeds.base(name) in found.systems
            },
            "masked_terms": {name: self.masked_terms(name) for name in found.encoders},
            "encoders": {},
        }  # fmt: skip
        return {**facts, "latency": self.latency() if found.latency else ""}

    def card(self, system: str) -> dict[str, Any]:
        """What the card of a trained system tells about its making; `about` are files to read."""
        config, found = self.config, self.config.systems[system]
        encoder, stage = config.encoders[found.encoder], config.stages[found.stage]
        parts = {
            "stage": stage.values(teacher=bool(found.teacher)),
            "encoder": encoder.values(),
            "start": config.starts[encoder.start].values(),
            "importance": config.importance[encoder.importance].values() if encoder.masked_by_importance else {},
        }
        before = {name: config.encoders[name].values() for name in self.before(found.encoder)}
        collections = {part.get("collection") for part in (*parts.values(), *before.values())}
        used = [name for name in config.collections if name in collections]
        return {
            "name": system,
            "system": found.values(),
            **parts,
            **({"before": before} if before else {}),
            "collections": {name: config.collections[name].values() for name in used},
            "about": {name: self.about(name) for name in used},
        }

    def needed(self) -> list[str]:
        """What a whole run makes: the report, and the models with their cards."""
        return [self.page(), *(self.model(name) for name in self.systems(*TRAINED))]

    # --- which job makes what -----------------------------------------------------------------------------------------

    def job(self, rule: str, *names: str) -> jobs.Job:
        """The job of a rule for its wildcards, such as ``job("tokens", start, collection)``."""
        return jobs.RULES[rule](self, *names)

    def jobs(self, targets: Sequence[str] = ()) -> list[jobs.Job]:
        """Every job of a whole run, or of some targets (`making.ordered`), each after those that it reads from."""
        return making.ordered(self, targets)

    @cached_property
    def waiting(self) -> dict[tuple[str, str], int]:
        """How many jobs wait for a job of a whole run, one for the other, by its (rule, name): the longest chain."""
        chains: dict[tuple[str, str], int] = {}
        longest: dict[str, int] = {}  # of the jobs that read a path, themselves included
        for job in reversed(self.jobs()):
            chain = chains[job.rule, job.name] = max((longest.get(path, 0) for path in job.outputs), default=0)
            longest |= {path: max(longest.get(path, 0), chain + 1) for path in job.reads()}
        return chains

    def reading(self) -> str:
        """The plan as text: one line per job, and below it, indented, what it reads."""
        lines = []
        for job in self.jobs():
            lines.append(f"{job.rule} {job.name}".rstrip() + " -> " + " ".join(job.outputs))
            lines.extend(f"    {path}" for path in job.reads())
        return "\n".join(lines)
