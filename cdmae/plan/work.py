"""What each job does: floating-point operations of networks, processor time of everything else, disk and memory.

One function per rule. The processor times are per item and on one core, measured by the benchmarks of this project; a
rule that has run somewhere corrects them (`machine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cdmae import collections
from cdmae.config import systems
from cdmae.errors import InputError
from cdmae.plan import arithmetic, objectives
from cdmae.plan.arithmetic import Network
from cdmae.plan.sizes import BYTES_A_WORD, PIECES_A_WORD, Size, size

if TYPE_CHECKING:
    from pathlib import Path

    from cdmae.config.schema import Config, Stage

GB = 1e9
QUERY_TOKENS = 10.0  # word-pieces of a query
# seconds of one core
READ, HARVEST = 60e-6, 2e-3  # a passage, from its files to Parquet; from documentation strings
TOKENISE = 1 / 2.2e6  # a word-piece
COUNT = 1 / 5.5e6  # a word, all orders of n-grams
INDEX = 4e-6  # a word in Lucene's index
BM25_QUERY, BM25_PASSAGE = 3e-3, 0.9e-9  # a query; and for each passage that there is
# 28 measurements of .2 s, and those that take longer: RetroMAE's masks in Python for 512 word-pieces, 4 x .1 s, and
# SimLM's generator, 4 x 1.4 s
LATENCY = 12.0
MEASURE, FUSE = 7e-4, 1e-4  # a query of 1,000 passages
VOCABULARY = 8e-6  # a word of a text that a tokenizer is trained on
TEXT_ON_DISK = 0.6  # of its size, in Parquet
# what is held at a time, as in collections.store, vectors, reranking, search and trainer, whose imports take seconds
ROW_GROUP, SHARD, PIECE, QUERY_BLOCK, BLOCK, KEPT, MICRO_BATCH = 1 << 17, 1 << 15, 1 << 16, 4096, 1 << 16, 1 << 27, 4096
# bytes of memory: of a process that works on next to nothing, by what it imports
PLAIN, NUMBA, PANDAS, TRANSFORMERS, JAVA = 0.15 * GB, 0.2 * GB, 0.25 * GB, 0.28 * GB, 0.38 * GB
TORCH, TRAINER, SEARCHER, FOREIGN = 0.45 * GB, 0.55 * GB, 0.55 * GB, 0.6 * GB
NGRAM, IMPORTANT = 42.0, 27.0  # a word, half of it files that are mapped: counting, scoring
HARVESTED = 10e3  # a passage from documentation strings
TYPES = 95.0  # distinct words over the square root of all words
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

    def network(self, start: str) -> Network:
        """Return the network that begins at a start."""
        return Network.of(self.config.starts[start])

    def queries(self, collection: str, split: str) -> int:
        """Return the number of queries of a split; of a collection that cannot tell, none."""
        return self.sizes[collection].queries.get(split, 0)

    def downloads(self, collection: str) -> dict[Path, float]:
        """Tell what the source of a collection fetches and keeps outside of the results: file to bytes."""
        entry = self.config.collections[collection]
        tell = getattr(collections.source(entry.source), "downloads", None)
        return tell(entry.settings) if tell else {}

    def kinds(self, job: Job) -> list[str]:
        """Tell what jobs of equal speed have in common, the closest first: a source or an objective, and their rule."""
        if job.rule == "collection":
            return [f"collection from {self.config.collections[job.name].source}"]
        if job.rule == "pretrain":
            return [f"pretrain by {self.config.encoders[job.name].objective}", job.rule]
        return [job.rule]

    def work(self, job: Job) -> Work:
        """Estimate what a job takes."""
        return WORK.get(job.rule, _small)(self, *job.name.split("/"))


def _small(planned: Planned, *names: str) -> Work:
    return Work()


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
    text = corpus.passages * corpus.words * BYTES_A_WORD
    seconds = HARVEST if planned.config.collections[name].source == "pydocs" else READ
    memory = PLAIN + (HARVESTED * corpus.passages if seconds == HARVEST else _streamed(corpus) + 16 * corpus.passages)
    return Work(core_seconds=seconds * corpus.passages, disk=TEXT_ON_DISK * text, memory=memory)


def _streamed(corpus: Size) -> float:
    """Bytes of the text that is held at a time by who reads or writes all of it."""
    return 6 * min(corpus.passages, ROW_GROUP) * corpus.words * BYTES_A_WORD


def tokenizer(planned: Planned, start: str) -> Work:
    """Return the word-pieces of a text, or those of a checkpoint."""
    collection = planned.config.starts[start].collection
    words = planned.sizes[collection].passages * planned.sizes[collection].words if collection else 0.0
    return Work(core_seconds=VOCABULARY * words, memory=TRANSFORMERS + TRAINED_ON * _types(words))


def _types(words: float) -> float:
    """Distinct words of a text (Heaps' law)."""
    return TYPES * math.sqrt(words)


def tokens(planned: Planned, start: str, name: str) -> Work:
    """Word-pieces as uint16, and where passages and their texts begin."""
    corpus = planned.sizes[name]
    pieces = corpus.passages * corpus.words * PIECES_A_WORD
    known = min(0.2 * GB, KNOWN * _types(corpus.passages * corpus.words))
    memory = PANDAS + 48 * corpus.passages
    return Work(core_seconds=TOKENISE * pieces, disk=2 * pieces + 16 * corpus.passages, memory=memory, a_core=known)


def ngrams(planned: Planned, importance: str, start: str, name: str) -> Work:
    """Estimate counts of n-grams at every word."""
    words, orders = (
        planned.sizes[name].passages * planned.sizes[name].words,
        planned.config.importance[importance].window,
    )
    return Work(core_seconds=COUNT * words, disk=4 * orders * words, memory=NUMBA + NGRAM * words)


def importance(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Estimate a float16 at every word-piece."""
    words = planned.sizes[name].passages * planned.sizes[name].words
    return Work(core_seconds=0.5 * COUNT * words, disk=2 * PIECES_A_WORD * words, memory=NUMBA + IMPORTANT * words)


# --- training --------------------------------------------------------------------------------------------------------


def _model(network: Network, flops: float, layers: int, tokens: float) -> Work:
    """Estimate a training: weights, gradients and AdamW's moments in float32, and activations."""
    activations = SLACK * tokens * layers * 4 * (10 * network.width + 2 * network.inner)
    kept = 16.0 * network.parameters() + activations
    return Work(flops, disk=4.0 * network.parameters(), memory=TRAINER, network=kept)


def steps(epochs: float, examples: int, batch: int) -> int:
    """Count the steps of a pre-training, rounded up."""
    return math.ceil(epochs * examples / batch)


def pretrain(planned: Planned, name: str) -> Work:
    """Up to the step whose weights are kept."""
    encoder = planned.config.encoders[name]
    network = planned.network(encoder.start)
    if not encoder.pretrained:
        return Work(disk=4.0 * network.parameters(), memory=TORCH)
    corpus = planned.sizes[encoder.collection]
    last = encoder.steps or steps(encoder.epochs, corpus.passages, encoder.batch)
    flops = (encoder.take_step or last) * encoder.batch * objectives.passage(network, encoder, corpus)
    rows = min(MICRO_BATCH, encoder.batch * corpus.tokens(encoder.max_length))
    work = _model(network, flops, network.layers + encoder.decoder_layers, rows)
    return replace(work, network=work.network + 12.0 * rows * network.vocabulary)  # the head's logits


def _trained(planned: Planned, name: str) -> tuple[Stage, Network, Size, int]:
    """Return the stage of a trained system, its network, its collection, and how many queries it sees in all."""
    system = planned.config.systems[name]
    stage = planned.config.stages[system.stage]
    epochs = stage.epochs * (planned.queries(stage.collection, stage.split) // stage.queries * stage.queries)
    return (
        stage,
        planned.network(systems.start_of(planned.config, name)),
        planned.sizes[stage.collection],
        round(epochs),
    )


def train_retriever(planned: Planned, name: str) -> Work:
    """Estimate a group of passages and the query itself, for every query of every epoch."""
    stage, network, corpus, queries = _trained(planned, name)
    cached = stage.queries * stage.group > stage.chunk
    passage = arithmetic.training(network, corpus.tokens(stage.passage_length), cached=cached)
    query = arithmetic.training(network, QUERY_TOKENS, cached=cached)
    flops = queries * (stage.group * passage + query)
    work = _model(network, flops, network.layers, _chunk(stage, stage.passage_length))
    return replace(work, memory=work.memory + _texts(corpus))


def _texts(corpus: Size) -> float:
    """Bytes in which the texts of a collection are told apart (`groups.text_ids`)."""
    return _streamed(corpus) + 40.0 * corpus.passages


def _chunk(stage: Stage, length: int) -> float:
    """Word-pieces that are computed together."""
    return min(stage.chunk, stage.queries * stage.group) * float(length)


def _pair(longest: int, corpus: Size) -> float:
    """Word-pieces of a query and a passage as a reranker reads them."""
    return min(longest, QUERY_TOKENS + corpus.tokens(longest))


def train_reranker(planned: Planned, name: str) -> Work:
    """Estimate a group of pairs, of which the best are trained on."""
    stage, network, corpus, queries = _trained(planned, name)
    pairs = arithmetic.reranking(
        network, _pair(stage.max_length, corpus), stage.group, stage.forward_factor, stage.rdrop > 0
    )
    work = _model(network, queries * pairs, network.layers, _chunk(stage, stage.max_length))
    return replace(work, memory=work.memory + _texts(corpus))


def teacher(planned: Planned, student: str) -> Work:
    """Estimate a reranker's scores of all that its student draws: what there is to draw from, or as it has draws."""
    stage, _, corpus, queries = _trained(planned, student)
    system = planned.config.systems[planned.config.systems[student].teacher]
    network = planned.network(planned.config.encoders[system.encoder].start)
    drawn = min(stage.depth + stage.random_negatives, (stage.group - 1) * math.ceil(stage.epochs))
    pairs = queries / max(1.0, stage.epochs) * (1 + drawn)
    longest = planned.config.stages[system.stage].max_length
    tokens = _pair(longest, corpus)
    memory = _scoring(network, pairs, tokens) + _texts(corpus)
    return Work(pairs * network.forward(tokens), disk=8 * pairs, memory=memory)


def _scoring(network: Network, sequences: float, tokens: float, at_once: int = PIECE) -> float:
    """Memory of a process that reads sequences into a network, so many at a time."""
    return TORCH + 4.0 * network.parameters() + SEQUENCE * min(sequences, at_once) * tokens


# --- search ----------------------------------------------------------------------------------------------------------


def index_bm25(planned: Planned, name: str) -> Work:
    """Lucene's index."""
    words = planned.sizes[name].passages * planned.sizes[name].words
    return Work(core_seconds=INDEX * words, disk=2.5 * words, memory=JAVA / 2 + min(BUFFERED, INDEXED * words))


def _bm25(planned: Planned, targets: list[tuple[str, str]], depth: int) -> Work:
    asked = [(planned.queries(*target), planned.sizes[target[0]].passages) for target in targets]
    seconds = sum(queries * (BM25_QUERY + BM25_PASSAGE * passages) for queries, passages in asked)
    hits = [8.0 * depth * queries for queries, _ in asked]
    return Work(core_seconds=seconds, disk=sum(hits), memory=JAVA + max(hits))


def _dense(planned: Planned, name: str, targets: list[tuple[str, str]], depth: int) -> Work:
    network = _searcher(planned, name)
    asked = [(planned.queries(*target), planned.sizes[target[0]].passages) for target in targets]
    flops = sum(
        queries * (network.forward(QUERY_TOKENS) + passages * (2.0 * network.width + SELECT))
        for queries, passages in asked
    )
    base = FOREIGN if planned.config.systems[name].kind == "external" else SEARCHER
    kept = max(queries for queries, _ in asked) * depth  # hits of a target: their keys, sorted, and the run
    memory = base + HIT * min(kept, QUERY_BLOCK * depth) + 16 * min(kept, KEPT) + 8 * kept + 8 * BLOCK * network.width
    if not planned.config.evaluation.keep_vectors:  # they are made while they are searched
        encoded = [vectors(planned, name, collection) for collection in dict.fromkeys(on for on, _ in targets)]
        flops += sum(work.flops for work in encoded)
        memory += max(work.memory for work in encoded) - TORCH
    return Work(flops, disk=8.0 * depth * sum(queries for queries, _ in asked), memory=memory)


def _searcher(planned: Planned, name: str) -> Network:
    system = planned.config.systems[name]
    return (
        planned.network(systems.start_of(planned.config, name))
        if system.kind == "retriever"
        else Network.read(system.model)
    )


def mine_bm25(planned: Planned, name: str, on: str, split: str) -> Work:
    """BM25 over the training queries."""
    return _bm25(planned, [(on, split)], systems.mined(planned.config)[name, on, split])


def mine(planned: Planned, name: str, on: str, split: str) -> Work:
    """Estimate a retriever over the training queries."""
    return _dense(planned, name, [(on, split)], systems.mined(planned.config)[name, on, split])


def search_bm25(planned: Planned, name: str) -> Work:
    """BM25 over everything that is evaluated."""
    return _bm25(planned, systems.targets(planned.config), planned.config.evaluation.depth)


def search(planned: Planned, name: str) -> Work:
    """Estimate a retriever over everything that is evaluated."""
    return _dense(planned, name, systems.targets(planned.config), planned.config.evaluation.depth)


def vectors(planned: Planned, name: str, collection: str) -> Work:
    """Passages as float32 vectors."""
    system, network, corpus = planned.config.systems[name], _searcher(planned, name), planned.sizes[collection]
    if system.kind == "external":
        longest, base, times = system.passage_length or arithmetic.longest(system.model), FOREIGN - TORCH, PADDED
    else:
        longest, base, times = planned.config.stages[system.stage].passage_length, 0.0, 1.0
    tokens = corpus.tokens(planned.config.evaluation.lengths.get(collection, 0) or longest)
    memory = (
        base + _scoring(network, corpus.passages, tokens, SHARD) + 8.0 * min(corpus.passages, SHARD) * network.width
    )
    flops = times * corpus.passages * network.forward(tokens)
    return Work(flops, disk=4.0 * corpus.passages * network.width, memory=memory)


def rerank(planned: Planned, name: str) -> Work:
    """Estimate the best passages of every query that is evaluated."""
    system = planned.config.systems[name]
    network, stage = planned.network(systems.start_of(planned.config, name)), planned.config.stages[system.stage]
    pairs = {target: planned.queries(*target) * system.depth for target in systems.targets(planned.config)}
    longest = {target: planned.config.evaluation.lengths.get(target[0], 0) or stage.max_length for target in pairs}
    tokens = {target: _pair(longest[target], planned.sizes[target[0]]) for target in pairs}
    flops = sum(pairs[target] * network.forward(tokens[target]) for target in pairs)
    memory = _scoring(network, max(pairs.values()), max(tokens.values())) + 2 * _hits(planned)
    return Work(flops, disk=8.0 * _evaluated(planned) * planned.config.evaluation.depth, memory=memory)


def _evaluated(planned: Planned) -> int:
    return sum(planned.queries(*target) for target in systems.targets(planned.config))


def _hits(planned: Planned) -> float:
    """Bytes of the largest run."""
    queries = max((planned.queries(*target) for target in systems.targets(planned.config)), default=0)
    return 8.0 * planned.config.evaluation.depth * queries


def measures(planned: Planned, name: str) -> Work:
    """All measures of every query."""
    queries, memory = _evaluated(planned), PANDAS + 2 * _hits(planned) + 0.1 * GB  # dictionaries of some queries
    return Work(core_seconds=MEASURE * queries, disk=200.0 * queries, memory=memory)


def fuse(planned: Planned, name: str) -> Work:
    """Two sorts a query."""
    queries = _evaluated(planned)
    memory = PANDAS + 2 * _hits(planned) * len(planned.config.systems[name].of)
    return Work(core_seconds=FUSE * queries, disk=8.0 * queries * planned.config.evaluation.depth, memory=memory)


def masked_terms(planned: Planned, name: str) -> Work:
    """Estimate some thousand passages, masked again and again."""
    return Work(core_seconds=1.5, memory=TRANSFORMERS)


def latency(planned: Planned, name: str) -> Work:
    """Estimate what `benchmarks.latency` does, whatever the config."""
    return Work(core_seconds=LATENCY, memory=FOREIGN + 0.2 * GB)


def report(planned: Planned, name: str) -> Work:
    """Tables, pictures and tests over the measures of every query."""
    systems = len(planned.config.systems)
    return Work(core_seconds=3.0 + 3e-5 * systems * _evaluated(planned), memory=0.33 * GB + 2 * _hits(planned))


WORK: dict[str, Callable[..., Work]] = {
    rule.__name__: rule
    for rule in (
        collection, tokenizer, tokens, ngrams, importance, pretrain, train_retriever, train_reranker, teacher,
        index_bm25, mine_bm25, mine, search_bm25, search, vectors, rerank, measures, fuse, masked_terms, latency,
        report,
    )
} | {"mine_external": mine, "search_external": search, "vectors_external": vectors}  # fmt: skip
