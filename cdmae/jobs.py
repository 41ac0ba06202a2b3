"""The jobs of the workflow, one function per rule in the order of the pipeline: what each reads, writes and depends on.

A job says which settings its results depend on, so that touching another section of the config cannot restart it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae import collections

if TYPE_CHECKING:
    from cdmae.graph import Graph


@dataclass(frozen=True)
class Job:
    """One run of a rule: the files it reads and writes, and the settings that its results depend on.

    `name` joins the rule's wildcards with ``/``; `params` are named like the options of the script; `plugins` are the
    modules that the settings name, which no import statement shows.
    """

    rule: str
    name: str
    inputs: dict[str, str | list[str]]
    outputs: list[str]
    params: dict[str, Any] = field(default_factory=dict)
    plugins: list[str] = field(default_factory=list)

    def reads(self) -> list[str]:
        """All inputs in one list, each once."""
        found = [path for each in self.inputs.values() for path in ([each] if isinstance(each, str) else each)]
        return list(dict.fromkeys(found))


ROOT = Path(__file__).resolve().parent.parent
RULES: dict[str, Callable[..., Job]] = {}


def rule(function: Callable[..., Job]) -> Callable[..., Job]:
    """Register the job of the rule that is named like the function."""
    RULES[function.__name__] = function
    return function


# --- data ------------------------------------------------------------------------------------------------------------


@rule
def collection(graph: Graph, name: str) -> Job:
    """Passages, queries and judgments from their source."""
    entry = graph.config.collections[name]
    source = collections.source(entry.source)
    return Job(
        "collection",
        name,
        inputs={"files": [str(path) for path in source.depends(entry.settings)]},
        outputs=graph.collection_files(name),
        params={"settings": entry.values(), "version": source.version(entry.settings)},
        plugins=[entry.module],
    )


@rule
def tokenizer(graph: Graph, start: str) -> Job:
    """The word-pieces of a start: taken from its checkpoint, or trained on its collection."""
    entry = graph.config.starts[start]
    source = {} if entry.checkpoint else {"passages": graph.passages(entry.collection)}
    return Job(
        "tokenizer",
        start,
        inputs={**source, **_checkpoint(entry.checkpoint)},
        outputs=[graph.tokenizer(start)],
        params={"start": entry.tokenizer()},
    )


def _checkpoint(model: str, name: str = "checkpoint") -> dict[str, str | list[str]]:
    """The files of a model that is a folder here, as the input `name`; a name at the hub is no input."""
    folder = Path(model)
    if not model or not folder.is_dir():
        return {}
    return {name: sorted(str(path) for path in folder.iterdir() if not path.name.startswith("."))}


@rule
def tokens(graph: Graph, start: str, name: str) -> Job:
    """A collection in word-pieces."""
    inputs = {"tokenizer": graph.tokenizer(start), "passages": graph.passages(name)}
    return Job("tokens", f"{start}/{name}", inputs, [graph.tokens(start, name)])


@rule
def ngrams(graph: Graph, importance: str, start: str, name: str) -> Job:
    """How often every n-gram of a collection occurs."""
    return Job(
        "ngrams",
        f"{importance}/{start}/{name}",
        inputs={"tokens": graph.tokens(start, name), "tokenizer": graph.tokenizer(start)},
        outputs=[graph.ngrams(importance, start, name)],
        params={"settings": graph.config.importance[importance].counting()},
    )


@rule
def importance(graph: Graph, entry: str, start: str, name: str) -> Job:
    """The importance of every word: equations 7 and 8."""
    return Job(
        "importance",
        f"{entry}/{start}/{name}",
        inputs={"ngrams": graph.ngrams(entry, start, name), "tokens": graph.tokens(start, name)},
        outputs=[graph.importance(entry, start, name)],
        params={"settings": graph.config.importance[entry].values()},
    )


# --- pre-training ----------------------------------------------------------------------------------------------------


@rule
def pretrain(graph: Graph, name: str) -> Job:
    """An encoder, pre-trained or as it starts."""
    encoder = graph.config.encoders[name]
    start = graph.config.starts[encoder.start]
    inputs: dict[str, str | list[str]] = {"tokenizer": graph.tokenizer(encoder.start), **_checkpoint(start.checkpoint)}
    if encoder.after:
        inputs["after"] = graph.encoder(encoder.after)
    plugins = []
    if encoder.pretrained:
        inputs["tokens"] = graph.tokens(encoder.start, encoder.collection)
        plugins = [
            f"cdmae.pretraining.objectives.{encoder.objective}",
            *_maskings(*encoder.maskings),
        ]
    if encoder.reads_importance:
        inputs["importance"] = graph.importance_of(name)
    inputs |= _checkpoint(encoder.generator, "generator")
    params = {"settings": encoder.values(), "start": start.values(), "seed": encoder.seed}
    if steps := graph.snapshots(name):
        params["snapshots"] = steps
    return Job("pretrain", name, inputs, [graph.encoder(name)], params, plugins)


@rule
def snapshot(graph: Graph, name: str) -> Job:
    """An encoder as it was in the middle of another one's training."""
    encoder = graph.config.encoders[name]
    inputs = {"encoder": graph.encoder(encoder.snapshot_of)}
    return Job("snapshot", name, inputs, [graph.encoder(name)], {"step": encoder.take_step})


def _maskings(*names: str) -> list[str]:
    return [f"cdmae.masking.strategies.{name}" for name in dict.fromkeys(names)]


@rule
def masked_terms(graph: Graph, name: str) -> Job:
    """What the masks of an encoder fall on, beside uniform ones."""
    encoder = graph.config.encoders[name]
    return Job(
        "masked_terms",
        name,
        inputs={
            "tokens": graph.tokens(encoder.start, encoder.collection),
            "tokenizer": graph.tokenizer(encoder.start),
            "importance": graph.importance_of(name),
        },
        outputs=[graph.masked_terms(name)],
        params={"settings": encoder.masking(), "seed": encoder.seed, "example": graph.config.report.example},
        plugins=_maskings("uniform", "whole_word", "importance"),
    )


# --- training --------------------------------------------------------------------------------------------------------


def _trained(graph: Graph, name: str) -> Job:
    system = graph.config.systems[name]
    stage = graph.config.stages[system.stage]
    inputs: dict[str, str | list[str]] = {
        "encoder": graph.encoder(system.encoder),
        "collection": graph.collection_files(stage.collection)[:3],
        "tokens": graph.tokens(graph.start_of(name), stage.collection),
        "negatives": graph.negatives_of(name),
    }
    if system.teacher:
        inputs["teacher"] = graph.teacher(graph.taught_like(name))
    params = {"settings": stage.values(teacher=bool(system.teacher)), "seed": stage.seed}
    return Job(f"train_{system.kind}", name, inputs, [graph.trained(name)], params)


@rule
def train_retriever(graph: Graph, name: str) -> Job:
    """Stages 1, 2 and 3: equations 10 and 11."""
    return _trained(graph, name)


@rule
def train_reranker(graph: Graph, name: str) -> Job:
    """The cross-encoder."""
    return _trained(graph, name)


@rule
def teacher(graph: Graph, student: str) -> Job:
    """The reranker's scores of a student's candidates, positives included."""
    name, split = graph.trains_on(student)
    system = graph.config.systems[student]
    stage = graph.config.stages[system.stage]
    return Job(
        "teacher",
        student,
        inputs={
            "model": graph.trained(system.teacher),
            "collection": graph.collection_files(name)[:3],
            "tokens": graph.tokens(graph.start_of(system.teacher), name),
            "negatives": graph.negatives_of(student),
        },
        outputs=[graph.teacher(student)],
        params={
            "split": split,
            "depth": stage.depth,
            "group": stage.group,
            "random_negatives": stage.random_negatives,
            "epochs": stage.epochs,
            "seed": stage.seed,
        },
    )


# --- search ----------------------------------------------------------------------------------------------------------


@rule
def index_bm25(graph: Graph, name: str) -> Job:
    """An inverted index."""
    return Job("index_bm25", name, {"passages": graph.passages(name)}, [graph.index(name)])


@rule
def vectors(graph: Graph, system: str, name: str) -> Job:
    """A retriever's vectors of a collection."""
    inputs = {"model": graph.trained(system), "tokens": graph.tokens(graph.start_of(system), name)}
    params = {"length": graph.lengths([name])[0]}
    return Job("vectors", f"{system}/{name}", inputs, [graph.vectors(system, name)], params)


@rule
def vectors_external(graph: Graph, system: str, name: str) -> Job:
    """A foreign retriever's vectors of a collection."""
    entry = graph.config.systems[system]
    return Job(
        "vectors_external",
        f"{system}/{name}",
        inputs={"passages": graph.passages(name), **_checkpoint(entry.model)},
        outputs=[graph.vectors(system, name)],
        params={
            "model": entry.model,
            "query_length": entry.query_length,
            "passage_length": graph.lengths([name])[0] or entry.passage_length,
        },
    )


def _search(graph: Graph, name: str, names: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs and the params of a system that searches the collections in `names`."""
    system = graph.config.systems[name]
    inputs: dict[str, Any] = {
        "queries": [graph.queries(each) for each in names],
        "qrels": [graph.qrels(each) for each in names],  # what they exclude is not found
    }
    if system.kind == "bm25":
        return {"indexes": [graph.index(each) for each in names], **inputs}, {"k1": system.k1, "b": system.b}
    if graph.config.evaluation.keep_vectors:
        inputs["vectors"] = [graph.vectors(name, each) for each in names]
    elif system.kind == "external":
        inputs["passages"] = [graph.passages(each) for each in names]
    else:
        inputs["tokens"] = [graph.tokens(graph.start_of(name), each) for each in names]
    if system.kind == "external":
        lengths = {"query_length": system.query_length, "passage_length": system.passage_length}
        return {**inputs, **_checkpoint(system.model)}, {"model": system.model, **lengths}
    return {"model": graph.trained(name), **inputs}, {}


def _mined(graph: Graph, name: str, on: str, split: str) -> Job:
    inputs, params = _search(graph, name, [on])
    params |= {"splits": [split], "depth": graph.mined()[name, on, split]}
    kind = graph.config.systems[name].kind
    if kind != "bm25":
        params["lengths"] = graph.lengths([on])
    else:
        triples = graph.config.systems[name].triples
        params["triples"] = {"name": triples, **graph.config.collections[on].values()} if triples else {}
        params |= dict.fromkeys(("k1", "b"), 0.0) if triples else {}  # nothing is searched
    outputs = [graph.negatives(name, on, split)]
    return Job(MINE[kind], f"{name}/{on}/{split}", inputs, outputs, params)


def _searched(graph: Graph, name: str) -> Job:
    inputs, params = _search(graph, name, graph.evaluated())
    params |= {"splits": [split for _, split in graph.targets()], "depth": graph.config.evaluation.depth}
    kind = graph.config.systems[name].kind
    if kind != "bm25":
        params["lengths"] = graph.lengths([each for each, _ in graph.targets()])
    return Job(SEARCH[kind], name, inputs, graph.runs(name), params)


MINE = {"bm25": "mine_bm25", "retriever": "mine", "external": "mine_external"}
SEARCH = {
    "bm25": "search_bm25",
    "retriever": "search",
    "external": "search_external",
    "reranker": "rerank",
    "fusion": "fuse",
}
RULES |= dict.fromkeys(MINE.values(), _mined)
RULES |= dict.fromkeys([SEARCH[kind] for kind in MINE], _searched)


@rule
def rerank(graph: Graph, name: str) -> Job:
    """The best passages of another system's runs in the order of the reranker."""
    system = graph.config.systems[name]
    return Job(
        "rerank",
        name,
        inputs={
            "model": graph.trained(name),
            "queries": [graph.queries(each) for each in graph.evaluated()],
            "tokens": [graph.tokens(graph.start_of(name), each) for each in graph.evaluated()],
            "runs": graph.runs(system.reranks),
        },
        outputs=graph.runs(name),
        params={
            "splits": [split for _, split in graph.targets()],
            "lengths": graph.lengths([each for each, _ in graph.targets()]),
            "depth": system.depth,
        },
    )


@rule
def fuse(graph: Graph, name: str) -> Job:
    """The reciprocal ranks of several systems, summed; the runs come target by target."""
    system = graph.config.systems[name]
    runs = [graph.run(each, *target) for target in graph.targets() for each in system.of]
    params = {"k": system.k, "depth": graph.config.evaluation.depth}
    return Job("fuse", name, {"runs": runs}, graph.runs(name), params)


# --- results ---------------------------------------------------------------------------------------------------------


@rule
def measures(graph: Graph, name: str) -> Job:
    """Every measure of every query."""
    used = [path for each in graph.evaluated() for path in (graph.queries(each), graph.qrels(each))]
    params = {
        "names": [each for each, _ in graph.targets()],
        "splits": [split for _, split in graph.targets()],
        "measures": [" ".join(graph.config.evaluation.measured(*each)) for each in graph.targets()],
    }
    return Job("measures", name, {"collections": used, "runs": graph.runs(name)}, [graph.measures(name)], params)


@rule
def release(graph: Graph, name: str) -> Job:
    """A trained model with its card."""
    facts = graph.card(name)
    inputs: dict[str, str | list[str]] = {"model": graph.trained(name), "measures": graph.measures(name)}
    inputs["about"] = list(facts["about"].values())
    return Job("release", name, inputs, [graph.model(name)], {"facts": facts})


@rule
def report(graph: Graph) -> Job:
    """The page at the end."""
    facts = graph.facts()
    parts = ("measures", "encoders", "trained", "masked_terms", "importance", "teachers", "runs")
    inputs: dict[str, str | list[str]] = {part: list(facts[part].values()) for part in parts}
    inputs["mined"] = sorted(set(facts["mined"].values()))
    inputs["collections"] = [graph.about(name) for name in facts["collections"]]
    outputs = [graph.page(), f"{graph.report()}/tables", f"{graph.report()}/figures", graph.path("facts.json")]
    return Job("report", "", inputs, outputs, {"facts": facts})


# What `./run table_stages` and the like make: not part of a whole run.
TABLES = (
    "table_main",
    "table_stages",
    "table_beir",
    "table_projection",
    "table_corpus",
    "table_latency",
    "table_claims",
)
FIGURES = ("figure_negatives", "figure_masked_terms", "figure_sampling", "figure_steps")
EXHIBITS = {TABLES: ("csv", "md", "tex", "html"), FIGURES: ("svg", "csv")}  # and the forms in which they come


@rule
def latency(graph: Graph) -> Job:
    """Milliseconds of masking a batch as each method does it."""
    return Job("latency", "", {}, [graph.latency()])


def _exhibit(graph: Graph, name: str) -> Job:
    facts = graph.exhibit(name)
    inputs: dict[str, str | list[str]] = {
        part: list(facts[part].values()) for part in ("measures", "masked_terms", "encoders")
    }
    inputs["collections"] = [graph.about(name) for name in facts["collections"]]
    inputs["latency"] = [path for path in [facts["latency"]] if path]
    kind, group = ("table", TABLES) if name in TABLES else ("figure", FIGURES)
    outputs = [f"{graph.exhibits()}/{name}.{form}" for form in EXHIBITS[group]]
    return Job(kind, name, inputs, outputs, {"facts": facts})


@rule
def table(graph: Graph, name: str) -> Job:
    """A table of the paper."""
    return _exhibit(graph, name)


@rule
def figure(graph: Graph, name: str) -> Job:
    """A figure of the paper, and its numbers."""
    return _exhibit(graph, name)


@rule
def export(graph: Graph, system: str, collection: str, split: str) -> Job:
    """A run as TREC text, on request."""
    return Job(
        "export",
        f"{system}/{collection}/{split}",
        inputs={"run": graph.run(system, collection, split), "collection": graph.collection_files(collection)},
        outputs=[graph.path("trec", system, f"{collection}.{split}.run")],
    )
