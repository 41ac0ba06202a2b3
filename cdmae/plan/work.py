"""Count each job's work: operations of networks, and the units priced in ``prices.csv``.

One function per rule. All counts follow from the config and from the sizes of the collections.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from cdmae.config import systems
from cdmae.errors import InputError
from cdmae.plan import flops, prices
from cdmae.plan.flops import BACKWARD, Network
from cdmae.plan.sizes import PIECES_A_WORD, Size, count, size

if TYPE_CHECKING:
    from pathlib import Path

    from cdmae.config.schema import Config
    from cdmae.config.stages import Stage

QUERY_TOKENS = 10.0  # word-pieces of a query
TYPES = 95.0  # distinct words over the square root of all words (Heaps' law)
SELECT = 4000.0  # operations' worth of choosing the best, a query and passage
PRODUCTS = 1000.0  # operations' worth of the products of a sparse query and passage
ENTRIES = 200.0  # of a sparse passage
PADDED = 2.0  # how much longer sentence-transformers takes, which pads
ON_GPU = 2.5e9  # bytes of a process's own memory that CUDA and its libraries take, for each GPU
MARGIN = 1.25  # of the memory that a rule asks for
LEAST, UNTOLD = (
    4000,
    64000,
)  # megabytes: of any job; of what is made at a source that cannot tell its size


class Work(NamedTuple):
    """The work of a job: operations of networks, and its units by their names in the table."""

    flops: float = 0.0
    units: Mapping[str, float] = MappingProxyType({})


class Price(NamedTuple):
    """The cost of a job: operations, startup, seconds of one core, bytes of disk and memory."""

    flops: float
    start: float
    seconds: float
    disk: float
    memory: float


class Job(NamedTuple):
    """A job of a dry run: its rule, its wildcards joined by ``/``, its files, and what it is given.

    due: whether Snakemake would run it now.
    """

    rule: str
    name: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    threads: int = 1
    gpus: int = 0
    due: bool = True


class Planned:
    """A config with the sizes that its jobs depend on."""

    def __init__(self, config: Config) -> None:
        """Take a checked config."""
        self.config = config
        self._counted: dict[str, Size] = {}
        self._told: dict[str, Size] = {}

    @property
    def sizes(self) -> dict[str, Size]:
        """The size of every collection."""
        return {name: self.size(name) for name in self.config.collections}

    def size(self, collection: str) -> Size:
        """Return the size of a collection: counted once it is made, given by its source before."""
        if collection not in self._counted and (counted := count(self.config, collection)):
            self._counted[collection] = counted
        if collection in self._counted:
            return self._counted[collection]
        if collection not in self._told:
            self._told[collection] = size(self.config, collection)
        return self._told[collection]

    def network(self, system: str) -> Network:
        """Return the network of a system."""
        if model := self.config.systems[system].model:
            return Network.read(model)
        return Network.of(self.config.starts[systems.start_of(self.config, system)])

    def queries(self, targets: list[tuple[str, str]]) -> list[int]:
        """Count the queries of some (collection, split); of a collection that cannot tell, none."""
        return [self.size(collection).queries.get(split, 0) for collection, split in targets]

    @cached_property
    def evaluated(self) -> list[int]:
        """The queries of everything that is evaluated."""
        return self.queries(systems.targets(self.config))

    @property
    def largest_run(self) -> float:
        """Passages of the largest run of the evaluation."""
        return self.config.evaluation.depth * max(self.evaluated, default=0)

    def downloads(self, collection: str) -> dict[Path, float]:
        """Return the files that a collection's source keeps outside the results: file -> bytes."""
        return self.config.collections[collection].settings.downloads()

    def work(self, job: Job) -> Work:
        """Count the work of a job."""
        return WORK[job.rule](self, *job.name.split("/")) if job.rule in WORK else Work()

    def price(self, job: Job) -> Price:
        """Price a job by the table; the memory is the host's, without what lies on its GPUs."""
        work = self.work(job)
        table = prices.of(job.rule)
        units = {"job": 1.0, **work.units}
        if "core" in table:
            units["core"] = job.threads
        seconds, disk, memory, device = (
            sum(number * table[unit][column] for unit, number in units.items())
            for column in prices.PRICED
        )
        host = job.gpus * (memory + ON_GPU) if job.gpus else memory + device
        start = table["job"]["seconds"]
        return Price(work.flops, start, seconds - start, disk, host)


def asked(planned: Planned, job: Job, attempt: int) -> int:
    """Return the megabytes that a job requests: the plan's with a `MARGIN`, more per attempt."""
    try:
        memory = planned.price(job).memory
    except InputError:
        return UNTOLD * attempt
    return max(LEAST, round(MARGIN * memory / 1e6)) * attempt


# --- data -----------------------------------------------------------------------------------------


def collection(planned: Planned, name: str) -> Work:
    """Read, check and write the passages."""
    corpus = planned.size(name)
    documented = planned.config.collections[name].source == "pydocs"
    unit = "documented passage" if documented else "passage"
    return Work(units={unit: corpus.passages, "word": corpus.all_words})


def tokenizer(planned: Planned, start: str) -> Work:
    """Take the word-pieces of a checkpoint, or train those of a text."""
    name = planned.config.starts[start].collection
    words = planned.size(name).all_words if name else 0.0
    return Work(units={"word": words, "distinct word": TYPES * math.sqrt(words)})


def tokens(planned: Planned, start: str, name: str) -> Work:
    """Write word-pieces as integers, and where passages and their texts begin.

    Tokenizers other than BERT's take longer. They number a piece twice, so that theirs may need
    uint32.
    """
    corpus, entry = planned.size(name), planned.config.starts[start]
    pieces, chunks = corpus.all_words * PIECES_A_WORD, flops.is_word_piece(entry)
    numbers = Network.of(entry).vocabulary * (1 if chunks else 2)
    width = 2 if numbers <= 1 << 16 else 4
    return Work(
        units={
            "passage": corpus.passages,
            "piece" if chunks else "whole piece": pieces,
            "byte": width * pieces,
        }
    )


def ngrams(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Count the n-grams at every word."""
    words, orders = planned.size(name).all_words, planned.config.importance[entry].window
    return Work(units={"word": words, "count": orders * words})


def importance(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Write a number at every word-piece."""
    words = planned.size(name).all_words
    return Work(units={"word": words, "piece": PIECES_A_WORD * words})


# --- training -------------------------------------------------------------------------------------


def _states(network: Network) -> int:
    """Numbers of a layer at a word-piece that are kept for the backward pass."""
    return 10 * network.width + 2 * network.inners * network.inner


def pretrain(planned: Planned, name: str) -> Work:
    """Train up to the step whose weights are kept."""
    encoder = planned.config.encoders[name]
    network = Network.of(planned.config.starts[encoder.start])
    weights, corpus = network.parameters(), planned.size(encoder.collection)
    steps = (
        encoder.take_step
        or encoder.steps
        or math.ceil(encoder.epochs * corpus.passages / encoder.batch)
    )
    return Work(
        steps * encoder.batch * flops.passage(network, encoder, corpus),
        {
            "weight": weights,
            "trained weight": weights,
            "state": (network.layers + encoder.held_layers) * _states(network),
            "vocabulary entry": network.vocabulary,
        },
    )


def untrained(planned: Planned, name: str) -> Work:
    """Copy the weights of a checkpoint, or draw random ones."""
    start = planned.config.starts[planned.config.encoders[name].start]
    return Work(units={"weight": Network.of(start).parameters()})


def _training(planned: Planned, name: str) -> tuple[Stage, Size, int, dict[str, float]]:
    """Return a system's stage, its collection, its number of queries, and units of its texts."""
    stage = planned.config.stages[planned.config.systems[name].stage]
    corpus = planned.size(stage.collection)
    (queries,) = planned.queries([systems.trains_on(planned.config, name)])
    seen = round(stage.epochs * (queries // stage.queries * stage.queries))
    return stage, corpus, seen, {"passage": corpus.passages, "candidate": queries * stage.depth}


def _trained(network: Network, stage: Stage, longest: int) -> dict[str, float]:
    """Count what a training keeps of its network, which computes a chunk of texts at a time."""
    rows = min(stage.chunk, stage.queries * stage.group) * longest
    return {
        "weight": network.parameters(),
        "trained weight": network.parameters(),
        "activation": rows * network.layers * _states(network),
    }


def train_retriever(planned: Planned, name: str) -> Work:
    """Train on a group of passages and the query; gradient caching adds a forward pass.

    The backward pass of a sparse head multiplies sparse matrices and is not counted.
    """
    stage, corpus, queries, texts = _training(planned, name)
    network = planned.network(name)
    longest = stage.passage_length
    forward = 1 + (stage.queries * stage.group > stage.chunk)
    tokens = corpus.tokens(longest)
    group = stage.group * network.forward(tokens) + network.forward(QUERY_TOKENS)
    operations = (forward + BACKWARD) * group
    units = texts | _trained(network, stage, longest)
    if stage.head == "sparse":
        operations += forward * (stage.group * network.head(tokens) + network.head(QUERY_TOKENS))
        units["batch entry"] = stage.queries * (1 + stage.group) * network.vocabulary
    return Work(queries * operations, units)


def _pair(longest: int, corpus: Size) -> float:
    """Word-pieces of a query and a passage as a reranker reads them."""
    return min(longest, QUERY_TOKENS + corpus.tokens(longest))


def train_reranker(planned: Planned, name: str) -> Work:
    """Read all pairs of a query's group, and train on the best ones, twice with R-Drop."""
    stage, corpus, queries, texts = _training(planned, name)
    network, longest = planned.network(name), stage.max_length
    trained = stage.group / stage.forward_factor * (1 + BACKWARD) * (2 if stage.rdrop > 0 else 1)
    pairs = (stage.group + trained) * network.forward(_pair(longest, corpus))
    return Work(queries * pairs, texts | _trained(network, stage, longest))


def teacher(planned: Planned, student: str) -> Work:
    """Score with a reranker the student's candidates, or as many as the student draws."""
    stage, corpus, queries, texts = _training(planned, student)
    name = planned.config.systems[student].teacher
    network = planned.network(name)
    drawn = min(stage.depth + stage.random_negatives, (stage.group - 1) * math.ceil(stage.epochs))
    pairs = queries / max(1.0, stage.epochs) * (1 + drawn)
    tokens = _pair(planned.config.stages[planned.config.systems[name].stage].max_length, corpus)
    return Work(
        pairs * network.forward(tokens), texts | {"weight": network.parameters(), "pair": pairs}
    )


# --- search ---------------------------------------------------------------------------------------


def index_bm25(planned: Planned, name: str) -> Work:
    """Lucene's index."""
    return Work(units={"word": planned.size(name).all_words})


def _searched(planned: Planned, name: str, mined: tuple[str, ...]) -> dict[str, float]:
    """Count the queries of a search, the passages compared with them, and the hits.

    mined: the (collection, split) of training queries; none: everything that is evaluated.
    """
    depth = (
        systems.mined(planned.config)[name, *mined] if mined else planned.config.evaluation.depth
    )
    targets = [mined] if mined else systems.targets(planned.config)
    queries = planned.queries(targets)
    passages = [planned.size(collection).passages for collection, _ in targets]
    compared = sum(asks * there for asks, there in zip(queries, passages, strict=True))
    return {"query": sum(queries), "scanned passage": compared, "hit": depth * sum(queries)}


def search_bm25(planned: Planned, name: str, *mined: str) -> Work:
    """BM25 over everything that is evaluated, or over training queries."""
    return Work(units=_searched(planned, name, mined))


def search(planned: Planned, name: str, *mined: str) -> Work:
    """Search with a retriever for everything that is evaluated, or for training queries."""
    network, found = planned.network(name), _searched(planned, name, mined)
    operations = found["query"] * network.forward(QUERY_TOKENS)
    if planned.config.systems[name].is_sparse(planned.config):
        operations += found["query"] * network.head(QUERY_TOKENS)
        operations += found["scanned passage"] * PRODUCTS
    else:
        operations += found["scanned passage"] * (2.0 * network.width + SELECT)
    units = {"hit": found["hit"], "weight": network.parameters()}
    if not planned.config.evaluation.keep_vectors:  # they are made while they are searched
        collections = mined[:1] or planned.config.evaluation.collections
        operations += sum(vectors(planned, name, each).flops for each in collections)
        units["encoder"] = 1
    return Work(operations, units)


def vectors(planned: Planned, name: str, on: str) -> Work:
    """Encode passages as float32 vectors."""
    system, network, corpus = planned.config.systems[name], planned.network(name), planned.size(on)
    if system.model:  # of others
        longest = system.passage_length or flops.longest(system.model)
    else:
        longest = planned.config.stages[system.stage].passage_length
    tokens = corpus.tokens(planned.config.evaluation.lengths.get(on, 0) or longest)
    operations = network.forward(tokens)
    components: float = network.width
    if system.is_sparse(planned.config):
        operations += network.head(tokens)
        components = 2 * ENTRIES  # a weight and its word-piece
    operations *= corpus.passages * (PADDED if system.model else 1)
    units = {"weight": network.parameters(), "component": corpus.passages * components}
    return Work(operations, units)


def sparsity(planned: Planned, name: str) -> Work:
    """Encode the queries of a sparse retriever, and count the entries of its vectors."""
    network = planned.network(name)
    queries = sum(planned.evaluated)
    encoded = network.forward(QUERY_TOKENS) + network.head(QUERY_TOKENS)
    return Work(queries * encoded, {"weight": network.parameters()})


def rerank(planned: Planned, name: str) -> Work:
    """Order the best passages of every query that is evaluated anew."""
    system, evaluation, network = (
        planned.config.systems[name],
        planned.config.evaluation,
        planned.network(name),
    )
    longest = planned.config.stages[system.stage].max_length
    operations = 0.0
    for (on, _), queries in zip(systems.targets(planned.config), planned.evaluated, strict=True):
        tokens = _pair(evaluation.lengths.get(on, 0) or longest, planned.size(on))
        operations += queries * system.depth * network.forward(tokens)
    hits = sum(planned.evaluated) * evaluation.depth
    return Work(
        operations, {"weight": network.parameters(), "hit": hits, "hit read": planned.largest_run}
    )


def measures(planned: Planned, name: str) -> Work:
    """Compute all measures of every query."""
    return Work(units={"query": sum(planned.evaluated), "hit read": planned.largest_run})


def weights(planned: Planned, name: str) -> Work:
    """Fuse and measure the queries of a split with every mixture that is tried."""
    system = planned.config.systems[name]
    queries = sum(planned.queries([system.tuned_on])) if system.tuned_on else 0
    return Work(units={"query": queries, "hit read": planned.largest_run * len(system.of)})


def fuse(planned: Planned, name: str, *mined: str) -> Work:
    """Add up the votes of several runs, and sort."""
    found = _searched(planned, name, mined)
    votes = found["hit"] * len(planned.config.systems[name].of)
    return Work(units={"query": found["query"], "hit": found["hit"], "vote": votes})


def report(planned: Planned, name: str) -> Work:
    """Make tables, pictures and tests of the measures of every query."""
    compared = len(planned.config.systems) * sum(planned.evaluated)
    return Work(units={"compared query": compared, "hit read": planned.largest_run})


WORK: dict[str, Callable[..., Work]] = {
    rule.__name__: rule
    for rule in (
        collection,
        tokenizer,
        tokens,
        ngrams,
        importance,
        pretrain,
        untrained,
        train_retriever,
        train_reranker,
        teacher,
        index_bm25,
        search_bm25,
        search,
        vectors,
        sparsity,
        rerank,
        measures,
        weights,
        fuse,
        report,
    )
} | {
    "mine_bm25": search_bm25,
    "mine": search,
    "mine_external": search,
    "mine_fusion": fuse,
    "search_external": search,
    "vectors_external": vectors,
}
