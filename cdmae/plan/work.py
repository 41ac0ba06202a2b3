"""What each job does: floating-point operations of networks, processor time of everything else, disk and memory.

One function per rule. The processor times are per item and on one core, measured by the benchmarks of this project; a
rule that has run somewhere corrects them (`machine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cdmae.config import systems
from cdmae.errors import InputError
from cdmae.plan import flops
from cdmae.plan.flops import BACKWARD, Network
from cdmae.plan.sizes import BYTES_A_WORD, PIECES_A_WORD, Size, size

if TYPE_CHECKING:
    from pathlib import Path

    from cdmae.config.schema import Config, Stage

GB = 1e9
QUERY_TOKENS = 10.0  # word-pieces of a query
# seconds of one core
READ, HARVEST = 60e-6, 2e-3  # a passage, from its files to Parquet; from documentation strings
TOKENISE, TOKENISE_WHOLE = 1 / 2.2e6, 1 / 0.4e6  # a word-piece; where passages are not cut into chunks
COUNT = 1 / 5.5e6  # a word, all orders of n-grams
INDEX = 4e-6  # a word in Lucene's index
BM25_QUERY, BM25_PASSAGE = 3e-3, 0.9e-9  # a query; and for each passage that there is
MASKED_TERMS = 1.5  # some thousand passages, masked again and again
# 28 measurements of .2 s, and those that take longer: RetroMAE's masks in Python for 512 word-pieces, 4 x .1 s, and
# SimLM's generator, 4 x 1.4 s
LATENCY = 12.0
MEASURE, FUSE, WEIGH = 7e-4, 4e-4, 4e-3  # a query of 1,000 passages
VOCABULARY = 8e-6  # a word of a text that a tokenizer is trained on
TEXT_ON_DISK = 0.6  # of its size, in Parquet
# what is held at a time, as in vectors, reranking, search and trainer, whose imports take seconds
SHARD, PIECE, QUERY_BLOCK, BLOCK, MICRO_BATCH = 1 << 15, 1 << 15, 4096, 1 << 16, 4096
# bytes of memory: of a process that works on next to nothing, by what it imports
PLAIN, NUMBA, PANDAS, TRANSFORMERS, JAVA = 0.15 * GB, 0.2 * GB, 0.25 * GB, 0.28 * GB, 0.38 * GB
TORCH, TRAINER, SEARCHER, FOREIGN = 0.45 * GB, 0.55 * GB, 0.55 * GB, 0.6 * GB
NGRAM, IMPORTANT = 42.0, 27.0  # a word, half of it files that are mapped: counting, scoring
HARVESTED = 10e3  # a passage from documentation strings
TYPES = 95.0  # distinct words over the square root of all words (Heaps' law)
KNOWN, TRAINED_ON = 300.0, 800.0  # a distinct word for a tokenizer, and for one that is trained
INDEXED, BUFFERED = 120.0, 0.75 * GB  # a word in Java's heap, at most
SEQUENCE = 170.0  # a word-piece on its way into a network
HIT = 134.0  # a passage that faiss proposes for a query
SLACK = 2.2  # of activations: what the backward pass and the matrix library hold beside them
MARGIN, LEAST, UNTOLD = 1.25, 4000, 64000  # of the memory that a rule asks for: a factor, and megabytes
PADDED = 2.0  # how much longer sentence-transformers takes
SELECT = 4000.0  # operations' worth of choosing the best, a query and passage


@dataclass(frozen=True)
class Work:
    """What a job takes: operations of networks, seconds of one core, bytes it leaves, bytes of memory at its peak.

    network: bytes of weights and activations, which lie on the GPUs where there are any; a_core: bytes for each core
    that it is given.
    """

    flops: float = 0.0
    core_seconds: float = 0.0
    disk: float = 0.0
    memory: float = PLAIN
    network: float = 0.0
    a_core: float = 0.0


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

    @cached_property
    def sizes(self) -> dict[str, Size]:
        """The size of every collection."""
        return {name: size(self.config, name) for name in self.config.collections}

    def network(self, system: str) -> Network:
        """Return the network of a system."""
        if model := self.config.systems[system].model:
            return Network.read(model)
        return Network.of(self.config.starts[systems.start_of(self.config, system)])

    def queries(self, targets: list[tuple[str, str]]) -> list[int]:
        """Count the queries of some (collection, split); of a collection that cannot tell, none."""
        return [self.sizes[collection].queries.get(split, 0) for collection, split in targets]

    @cached_property
    def evaluated(self) -> list[int]:
        """The queries of everything that is evaluated."""
        return self.queries(systems.targets(self.config))

    @property
    def largest_run(self) -> float:
        """Bytes of the largest run of the evaluation."""
        return 8.0 * self.config.evaluation.depth * max(self.evaluated, default=0)

    def downloads(self, collection: str) -> dict[Path, float]:
        """Tell what the source of a collection fetches and keeps outside of the results: file to bytes."""
        return self.config.collections[collection].settings.downloads()

    def kinds(self, job: Job) -> list[str]:
        """Tell what jobs of equal speed have in common, the closest first: a source or an objective, and their rule."""
        if job.rule == "collection":
            return [f"collection from {self.config.collections[job.name].source}"]
        if job.rule == "pretrain":
            return [f"pretrain by {self.config.encoders[job.name].objective}", job.rule]
        return [job.rule]

    def work(self, job: Job) -> Work:
        """Estimate what a job takes."""
        return WORK[job.rule](self, *job.name.split("/")) if job.rule in WORK else CONSTANT.get(job.rule, Work())


def asked(config: Config, rule: str, *names: str) -> int:
    """Count the megabytes that a rule asks a cluster for: those of the plan with a `MARGIN`.

    What is made at a source that cannot tell its size gets `UNTOLD`.
    """
    try:
        memory = WORK[rule](Planned(config), *names).memory
    except InputError:
        return UNTOLD
    return max(LEAST, round(MARGIN * memory / 1e6))


# --- data ------------------------------------------------------------------------------------------------------------


def collection(planned: Planned, name: str) -> Work:
    """Read, check and write the passages."""
    corpus = planned.sizes[name]
    disk = TEXT_ON_DISK * corpus.all_words * BYTES_A_WORD
    if planned.config.collections[name].source == "pydocs":
        return Work(core_seconds=HARVEST * corpus.passages, disk=disk, memory=PLAIN + HARVESTED * corpus.passages)
    memory = PLAIN + corpus.streamed + 100 * corpus.passages  # ids, compared, and titles
    return Work(core_seconds=READ * corpus.passages, disk=disk, memory=memory)


def tokenizer(planned: Planned, start: str) -> Work:
    """Take the word-pieces of a checkpoint, or train those of a text."""
    name = planned.config.starts[start].collection
    words = planned.sizes[name].all_words if name else 0.0
    return Work(core_seconds=VOCABULARY * words, memory=TRANSFORMERS + TRAINED_ON * TYPES * math.sqrt(words))


def tokens(planned: Planned, start: str, name: str) -> Work:
    """Write word-pieces as uint16, and where passages and their texts begin.

    Tokenizers other than BERT's take longer. They number a piece twice, so that theirs may need uint32.
    """
    corpus, entry = planned.sizes[name], planned.config.starts[start]
    pieces, chunks = corpus.all_words * PIECES_A_WORD, flops.cut_into_chunks(entry)
    numbers = Network.of(entry).vocabulary * (1 if chunks else 2)
    return Work(
        core_seconds=(TOKENISE if chunks else TOKENISE_WHOLE) * pieces,
        disk=(2 if numbers <= 1 << 16 else 4) * pieces + 16 * corpus.passages,
        memory=PANDAS + 48 * corpus.passages,
        a_core=min(0.2 * GB, KNOWN * TYPES * math.sqrt(corpus.all_words)),
    )


def ngrams(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Count the n-grams at every word."""
    words, orders = planned.sizes[name].all_words, planned.config.importance[entry].window
    return Work(core_seconds=COUNT * words, disk=4 * orders * words, memory=NUMBA + NGRAM * words)


def importance(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Write a float16 at every word-piece."""
    words = planned.sizes[name].all_words
    return Work(core_seconds=0.5 * COUNT * words, disk=2 * PIECES_A_WORD * words, memory=NUMBA + IMPORTANT * words)


# --- training --------------------------------------------------------------------------------------------------------


def _trained(
    network: Network, operations: float, rows: float, *, decoders: int = 0, logits: int = 0, texts: float = 0.0
) -> Work:
    """Estimate a training: weights, gradients and AdamW's moments in float32, activations, and bytes of `texts`.

    rows: word-pieces that are computed together; decoders: their layers; logits: of the head at a word-piece.
    """
    weights = 4.0 * network.parameters()
    states = 10 * network.width + 2 * network.inners * network.inner
    activations = SLACK * rows * (network.layers + decoders) * 4 * states
    kept = 4 * weights + activations + 12.0 * rows * logits
    return Work(operations, disk=weights, memory=TRAINER + texts, network=kept)


def pretrain(planned: Planned, name: str) -> Work:
    """Train up to the step whose weights are kept."""
    encoder = planned.config.encoders[name]
    network = Network.of(planned.config.starts[encoder.start])
    corpus = planned.sizes[encoder.collection]
    steps = encoder.take_step or encoder.steps or math.ceil(encoder.epochs * corpus.passages / encoder.batch)
    rows = min(MICRO_BATCH, encoder.batch * corpus.tokens(encoder.max_length))
    price = steps * encoder.batch * flops.passage(network, encoder, corpus)
    return _trained(network, price, rows, decoders=encoder.decoder_layers, logits=network.vocabulary)


def untrained(planned: Planned, name: str) -> Work:
    """Copy the weights of a checkpoint, or draw random ones."""
    network = Network.of(planned.config.starts[planned.config.encoders[name].start])
    return Work(disk=4.0 * network.parameters(), memory=TORCH)


def _training(planned: Planned, name: str) -> tuple[Stage, Size, int, float]:
    """Return the stage of a trained system, its collection, how many queries it sees in all, and bytes of texts.

    These are what it takes to tell the texts of a collection apart (`groups.text_ids`).
    """
    stage = planned.config.stages[planned.config.systems[name].stage]
    corpus, (queries,) = planned.sizes[stage.collection], planned.queries([systems.trains_on(planned.config, name)])
    seen = round(stage.epochs * (queries // stage.queries * stage.queries))
    return stage, corpus, seen, corpus.streamed + 40.0 * corpus.passages


def train_retriever(planned: Planned, name: str) -> Work:
    """Train on a group of passages and the query itself; with gradient caching, in chunks, forward once more."""
    stage, corpus, queries, texts = _training(planned, name)
    network, sequences = planned.network(name), stage.queries * stage.group
    times = 1 + (sequences > stage.chunk) + BACKWARD
    group = stage.group * network.forward(corpus.tokens(stage.passage_length)) + network.forward(QUERY_TOKENS)
    rows = min(stage.chunk, sequences) * float(stage.passage_length)
    return _trained(network, queries * times * group, rows, texts=texts)


def _pair(longest: int, corpus: Size) -> float:
    """Word-pieces of a query and a passage as a reranker reads them."""
    return min(longest, QUERY_TOKENS + corpus.tokens(longest))


def train_reranker(planned: Planned, name: str) -> Work:
    """Read all pairs of a query's group, and train on the best ones, twice with R-Drop."""
    stage, corpus, queries, texts = _training(planned, name)
    trained = stage.group / stage.forward_factor * (1 + BACKWARD) * (2 if stage.rdrop > 0 else 1)
    network, rows = planned.network(name), min(stage.chunk, stage.queries * stage.group) * float(stage.max_length)
    pairs = (stage.group + trained) * network.forward(_pair(stage.max_length, corpus))
    return _trained(network, queries * pairs, rows, texts=texts)


def teacher(planned: Planned, student: str) -> Work:
    """Score with a reranker all that its student draws: what there is to draw from, or as it has draws."""
    stage, corpus, queries, texts = _training(planned, student)
    name = planned.config.systems[student].teacher
    drawn = min(stage.depth + stage.random_negatives, (stage.group - 1) * math.ceil(stage.epochs))
    pairs = queries / max(1.0, stage.epochs) * (1 + drawn)
    tokens = _pair(planned.config.stages[planned.config.systems[name].stage].max_length, corpus)
    network = planned.network(name)
    return Work(pairs * network.forward(tokens), disk=8 * pairs, memory=_scoring(network, pairs, tokens) + texts)


def _scoring(network: Network, sequences: float, tokens: float, at_once: int = PIECE) -> float:
    """Memory of a process that reads sequences into a network, so many at a time."""
    return TORCH + 4.0 * network.parameters() + SEQUENCE * min(sequences, at_once) * tokens


# --- search ----------------------------------------------------------------------------------------------------------


def index_bm25(planned: Planned, name: str) -> Work:
    """Lucene's index."""
    words = planned.sizes[name].all_words
    return Work(core_seconds=INDEX * words, disk=2.5 * words, memory=JAVA / 2 + min(BUFFERED, INDEXED * words))


def _searched(planned: Planned, name: str, mined: tuple[str, ...]) -> tuple[list[str], list[tuple[int, int]], int]:
    """Return the collections of a search, its targets as (queries, passages), and how many passages a query gets.

    mined: the (collection, split) of training queries; none: everything that is evaluated.
    """
    depth = systems.mined(planned.config)[name, *mined] if mined else planned.config.evaluation.depth
    targets = [mined] if mined else systems.targets(planned.config)
    passages = [planned.sizes[collection].passages for collection, _ in targets]
    return [on for on, _ in targets], list(zip(planned.queries(targets), passages, strict=True)), depth


def search_bm25(planned: Planned, name: str, *mined: str) -> Work:
    """BM25 over everything that is evaluated, or over training queries."""
    _, targets, depth = _searched(planned, name, mined)
    seconds = sum(queries * (BM25_QUERY + BM25_PASSAGE * passages) for queries, passages in targets)
    hits = [8.0 * depth * queries for queries, _ in targets]
    return Work(core_seconds=seconds, disk=sum(hits), memory=JAVA + max(hits))


def search(planned: Planned, name: str, *mined: str) -> Work:
    """Search with a retriever for everything that is evaluated, or for training queries."""
    on, targets, depth = _searched(planned, name, mined)
    network = planned.network(name)
    a_query, a_pair = network.forward(QUERY_TOKENS), 2.0 * network.width + SELECT
    operations = sum(queries * (a_query + passages * a_pair) for queries, passages in targets)
    kept = max(queries for queries, _ in targets) * depth  # hits of a target: their keys, sorted, and the run
    memory = FOREIGN if planned.config.systems[name].kind == "external" else SEARCHER
    memory += HIT * min(kept, QUERY_BLOCK * depth) + 24 * kept + 8 * BLOCK * network.width
    if not planned.config.evaluation.keep_vectors:  # they are made while they are searched
        encoded = [vectors(planned, name, collection) for collection in dict.fromkeys(on)]
        operations += sum(work.flops for work in encoded)
        memory += max(work.memory for work in encoded) - TORCH
    return Work(operations, disk=8.0 * depth * sum(queries for queries, _ in targets), memory=memory)


def vectors(planned: Planned, name: str, on: str) -> Work:
    """Encode passages as float32 vectors."""
    system, network, corpus = planned.config.systems[name], planned.network(name), planned.sizes[on]
    if system.kind == "external":
        longest, base, times = system.passage_length or flops.longest(system.model), FOREIGN - TORCH, PADDED
    else:
        longest, base, times = planned.config.stages[system.stage].passage_length, 0.0, 1.0
    tokens = corpus.tokens(planned.config.evaluation.lengths.get(on, 0) or longest)
    shard = 8.0 * min(corpus.passages, SHARD) * network.width
    return Work(
        times * corpus.passages * network.forward(tokens),
        disk=4.0 * corpus.passages * network.width,
        memory=base + _scoring(network, corpus.passages, tokens, SHARD) + shard,
    )


def rerank(planned: Planned, name: str) -> Work:
    """Order the best passages of every query that is evaluated anew."""
    system, evaluation, network = planned.config.systems[name], planned.config.evaluation, planned.network(name)
    longest = planned.config.stages[system.stage].max_length
    collections = [collection for collection, _ in systems.targets(planned.config)]
    tokens = [_pair(evaluation.lengths.get(on, 0) or longest, planned.sizes[on]) for on in collections]
    pairs = [queries * system.depth for queries in planned.evaluated]
    return Work(
        sum(number * network.forward(length) for number, length in zip(pairs, tokens, strict=True)),
        disk=8.0 * sum(planned.evaluated) * evaluation.depth,
        memory=_scoring(network, max(pairs), max(tokens)) + 2 * planned.largest_run,
    )


def measures(planned: Planned, name: str) -> Work:
    """Compute all measures of every query."""
    queries = sum(planned.evaluated)
    memory = PANDAS + 2 * planned.largest_run + 0.1 * GB  # dictionaries of some queries
    return Work(core_seconds=MEASURE * queries, disk=200.0 * queries, memory=memory)


def weights(planned: Planned, name: str) -> Work:
    """Fuse and measure the queries of a split with every mixture that is tried."""
    system = planned.config.systems[name]
    queries = sum(planned.queries([system.tuned_on])) if system.tuned_on else 0
    return Work(core_seconds=WEIGH * queries, memory=PANDAS + 2 * planned.largest_run * len(system.of))


def fuse(planned: Planned, name: str, *mined: str) -> Work:
    """Sort twice a query."""
    _, targets, depth = _searched(planned, name, mined)
    queries = [number for number, _ in targets]
    held = 32.0 * max(queries) * planned.config.evaluation.depth  # the runs and the votes of all queries
    memory = PANDAS + held * len(planned.config.systems[name].of)
    return Work(core_seconds=FUSE * sum(queries), disk=8.0 * sum(queries) * depth, memory=memory)


def report(planned: Planned, name: str) -> Work:
    """Make tables, pictures and tests of the measures of every query."""
    seconds = 3.0 + 3e-5 * len(planned.config.systems) * sum(planned.evaluated)
    return Work(core_seconds=seconds, memory=0.33 * GB + 2 * planned.largest_run)


WORK: dict[str, Callable[..., Work]] = {
    rule.__name__: rule
    for rule in (
        collection, tokenizer, tokens, ngrams, importance, pretrain, untrained, train_retriever,
        train_reranker, teacher, index_bm25, search_bm25, search, vectors, rerank, measures, weights, fuse, report,
    )
} | {
    "mine_bm25": search_bm25, "mine": search, "mine_external": search, "mine_fusion": fuse, "search_external": search,
    "vectors_external": vectors,
}  # fmt: skip
CONSTANT = {  # whatever the config
    "masked_terms": Work(core_seconds=MASKED_TERMS, memory=TRANSFORMERS),
    "latency": Work(core_seconds=LATENCY, memory=FOREIGN + 0.2 * GB),
}
