"""What each job does: floating-point operations of networks, processor time of everything else, disk and memory.

One function per rule. The processor times are per item and on one core, measured by the benchmarks of this project; a
rule that has run somewhere corrects them (`machine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cdmae.planning import arithmetic
from cdmae.planning.arithmetic import Network
from cdmae.planning.sizes import BYTES_A_WORD, PIECES_A_WORD, Size, size

if TYPE_CHECKING:
    from cdmae.config import Stage
    from cdmae.graph import Graph
    from cdmae.jobs import Job

GB = 1e9
QUERY_TOKENS = 10.0  # word-pieces of a query
# seconds of one core
READ, HARVEST = 60e-6, 2e-3  # a passage, from its files to Parquet; from documentation strings
TOKENISE = 1 / 2.2e6  # a word-piece
COUNT = 1 / 5.5e6  # a word, all orders of n-grams
INDEX = 4e-6  # a word in Lucene's index
BM25_QUERY, BM25_PASSAGE = 1e-3, 0.9e-9  # a query; and for each passage that there is
MEASURE = 1e-4  # a query of 1,000 passages
VOCABULARY = 8e-6  # a word of a text that a tokenizer is trained on
TEXT_ON_DISK = 0.6  # of its size, in Parquet
NGRAM = 45.0  # bytes of memory a word
BASE = 1.5 * GB  # memory of a process with torch
BLOCK = 4 * GB  # memory of a search: vectors are read block by block


@dataclass(frozen=True)
class Work:
    """What a job takes: operations of networks, seconds of one core, bytes it leaves, bytes of memory at its peak."""

    flops: float = 0.0
    core_seconds: float = 0.0
    disk: float = 0.0
    memory: float = 0.3 * GB


class Planned:
    """A graph with the sizes that its jobs depend on."""

    def __init__(self, graph: Graph, exhibits: Sequence[str] = ()) -> None:
        """Take the graph of a checked config, for a whole run or for some tables and figures."""
        self.graph, self.config = graph, graph.config
        self.jobs = graph.jobs(exhibits)

    @cached_property
    def sizes(self) -> dict[str, Size]:
        """The size of every collection."""
        return {name: size(self.graph, name) for name in self.config.collections}

    def network(self, start: str) -> Network:
        """The network that begins at a start."""
        return Network.of(self.config.starts[start])

    def queries(self, collection: str, split: str) -> int:
        """The number of queries of a split; of a collection that cannot tell, none."""
        return self.sizes[collection].queries.get(split, 0)

    def kind(self, job: Job) -> str:
        """What jobs of equal speed have in common: their rule, and the source of a collection."""
        if job.rule == "collection":
            return f"collection from {self.config.collections[job.name].source}"
        return job.rule

    def work(self, job: Job) -> Work:
        """What a job takes."""
        return WORK.get(job.rule, _small)(self, *job.name.split("/"))


def _small(planned: Planned, *names: str) -> Work:
    return Work()


# --- data ------------------------------------------------------------------------------------------------------------


def collection(planned: Planned, name: str) -> Work:
    """Read, check and write the passages."""
    found = planned.sizes[name]
    text = found.passages * found.words * BYTES_A_WORD
    each = HARVEST if planned.config.collections[name].source == "pydocs" else READ
    return Work(core_seconds=each * found.passages, disk=TEXT_ON_DISK * text, memory=1 * GB)


def tokenizer(planned: Planned, start: str) -> Work:
    """The word-pieces of a text, or those of a checkpoint."""
    collection = planned.config.starts[start].collection
    words = planned.sizes[collection].passages * planned.sizes[collection].words if collection else 0.0
    return Work(core_seconds=VOCABULARY * words, memory=0.3 * GB + BYTES_A_WORD * words)


def tokens(planned: Planned, start: str, name: str) -> Work:
    """Word-pieces as uint16, and where passages and their texts begin."""
    found = planned.sizes[name]
    pieces = found.passages * found.words * PIECES_A_WORD
    memory = 1 * GB + 2 * found.passages * found.words * BYTES_A_WORD
    return Work(core_seconds=TOKENISE * pieces, disk=2 * pieces + 16 * found.passages, memory=memory)


def ngrams(planned: Planned, importance: str, start: str, name: str) -> Work:
    """Counts of n-grams at every word."""
    words, orders = (
        planned.sizes[name].passages * planned.sizes[name].words,
        planned.config.importance[importance].window,
    )
    return Work(core_seconds=COUNT * words, disk=4 * orders * words, memory=1 * GB + NGRAM * words)


def importance(planned: Planned, entry: str, start: str, name: str) -> Work:
    """A float16 at every word-piece."""
    words = planned.sizes[name].passages * planned.sizes[name].words
    return Work(core_seconds=0.5 * COUNT * words, disk=2 * PIECES_A_WORD * words, memory=1 * GB + NGRAM * words)


# --- training --------------------------------------------------------------------------------------------------------


def _model(network: Network, flops: float) -> Work:
    """A training: weights, gradients and AdamW's two moments in float32, and what a chunk needs."""
    return Work(flops, disk=4.0 * network.parameters(), memory=2 * BASE + 16.0 * network.parameters())


def steps(epochs: float, examples: int, batch: int) -> int:
    """Steps of a pre-training, rounded up."""
    return math.ceil(epochs * examples / batch)


def pretrain(planned: Planned, name: str) -> Work:
    """Up to the step whose weights are kept."""
    encoder = planned.config.encoders[name]
    network = planned.network(encoder.start)
    if not encoder.pretrained:
        return _model(network, 0.0)
    found = planned.sizes[encoder.collection]
    last = encoder.steps or steps(encoder.epochs, found.passages, encoder.batch)
    masked = encoder.encoder_ratio + encoder.decoder_ratio
    each = arithmetic.pretraining(network, found.tokens(encoder.max_length), encoder.decoder_layers, masked)
    return _model(network, (encoder.take_step or last) * encoder.batch * each)


def _trained(planned: Planned, name: str) -> tuple[Stage, Network, Size, int]:
    """The stage of a trained system, its network, its collection, and how many queries it sees in all."""
    system = planned.config.systems[name]
    stage = planned.config.stages[system.stage]
    epochs = stage.epochs * (planned.queries(stage.collection, stage.split) // stage.queries * stage.queries)
    return stage, planned.network(planned.graph.start_of(name)), planned.sizes[stage.collection], round(epochs)


def train_retriever(planned: Planned, name: str) -> Work:
    """A group of passages and the query itself, for every query of every epoch."""
    stage, network, found, queries = _trained(planned, name)
    cached = stage.queries * stage.group > stage.chunk
    passage = arithmetic.training(network, found.tokens(stage.passage_length), cached=cached)
    query = arithmetic.training(network, QUERY_TOKENS, cached=cached)
    return _model(network, queries * (stage.group * passage + query))


def _pair(stage: Stage, found: Size) -> float:
    """Word-pieces of a query and a passage as a reranker reads them."""
    return min(stage.max_length, QUERY_TOKENS + found.tokens(stage.max_length))


def train_reranker(planned: Planned, name: str) -> Work:
    """A group of pairs, of which the best are trained on."""
    stage, network, found, queries = _trained(planned, name)
    pairs = arithmetic.reranking(network, _pair(stage, found), stage.group, stage.forward_factor, stage.rdrop > 0)
    return _model(network, queries * pairs)


def teacher(planned: Planned, student: str) -> Work:
    """A reranker's scores of all that its student draws; as many as there are to draw from, or as it has draws."""
    stage, _, found, queries = _trained(planned, student)
    system = planned.config.systems[planned.config.systems[student].teacher]
    network = planned.network(planned.config.encoders[system.encoder].start)
    drawn = min(stage.depth + stage.random_negatives, (stage.group - 1) * math.ceil(stage.epochs))
    pairs = queries / max(1.0, stage.epochs) * (1 + drawn)
    longest = planned.config.stages[system.stage].max_length
    tokens = min(longest, QUERY_TOKENS + found.tokens(longest))
    return Work(pairs * network.forward(tokens), disk=8 * pairs, memory=2 * BASE)


# --- search ----------------------------------------------------------------------------------------------------------


def index_bm25(planned: Planned, name: str) -> Work:
    """Lucene's index."""
    words = planned.sizes[name].passages * planned.sizes[name].words
    return Work(core_seconds=INDEX * words, disk=2.5 * words, memory=2 * GB)


def _bm25(planned: Planned, targets: list[tuple[str, str]], depth: int) -> Work:
    asked = [(planned.queries(*target), planned.sizes[target[0]].passages) for target in targets]
    seconds = sum(queries * (BM25_QUERY + BM25_PASSAGE * passages) for queries, passages in asked)
    return Work(core_seconds=seconds, disk=8.0 * depth * sum(queries for queries, _ in asked), memory=2 * GB)


def _dense(planned: Planned, name: str, targets: list[tuple[str, str]], depth: int) -> Work:
    network = _searcher(planned, name)
    asked = [(planned.queries(*target), planned.sizes[target[0]].passages) for target in targets]
    flops = sum(
        queries * (network.forward(QUERY_TOKENS) + 2.0 * passages * network.width) for queries, passages in asked
    )
    return Work(flops, disk=8.0 * depth * sum(queries for queries, _ in asked), memory=BASE + BLOCK)


def _searcher(planned: Planned, name: str) -> Network:
    system = planned.config.systems[name]
    return planned.network(planned.graph.start_of(name)) if system.kind == "retriever" else Network()


def mine_bm25(planned: Planned, name: str, on: str, split: str) -> Work:
    """BM25 over the training queries."""
    return _bm25(planned, [(on, split)], planned.graph.mined()[name, on, split])


def mine(planned: Planned, name: str, on: str, split: str) -> Work:
    """A retriever over the training queries."""
    return _dense(planned, name, [(on, split)], planned.graph.mined()[name, on, split])


def search_bm25(planned: Planned, name: str) -> Work:
    """BM25 over everything that is evaluated."""
    return _bm25(planned, planned.graph.targets(), planned.config.evaluation.depth)


def search(planned: Planned, name: str) -> Work:
    """A retriever over everything that is evaluated."""
    return _dense(planned, name, planned.graph.targets(), planned.config.evaluation.depth)


def vectors(planned: Planned, name: str, collection: str) -> Work:
    """Passages as float32 vectors."""
    system, network, found = planned.config.systems[name], _searcher(planned, name), planned.sizes[collection]
    longest = planned.config.stages[system.stage].passage_length if system.stage else system.passage_length or 512
    flops = found.passages * network.forward(found.tokens(longest))
    return Work(flops, disk=4.0 * found.passages * network.width, memory=2 * BASE)


def rerank(planned: Planned, name: str) -> Work:
    """The best passages of every query that is evaluated."""
    system = planned.config.systems[name]
    network, stage = planned.network(planned.graph.start_of(name)), planned.config.stages[system.stage]
    flops = sum(
        planned.queries(*target) * system.depth * network.forward(_pair(stage, planned.sizes[target[0]]))
        for target in planned.graph.targets()
    )
    return Work(flops, disk=8.0 * _evaluated(planned) * planned.config.evaluation.depth, memory=2 * BASE)


def _evaluated(planned: Planned) -> int:
    return sum(planned.queries(*target) for target in planned.graph.targets())


def measures(planned: Planned, name: str) -> Work:
    """All measures of every query."""
    return Work(core_seconds=MEASURE * _evaluated(planned), disk=200.0 * _evaluated(planned), memory=2 * GB)


def fuse(planned: Planned, name: str) -> Work:
    """Two sorts a query."""
    queries = _evaluated(planned)
    return Work(core_seconds=MEASURE * queries, disk=8.0 * queries * planned.config.evaluation.depth, memory=1 * GB)


WORK: dict[str, Callable[..., Work]] = {
    each.__name__: each
    for each in (
        collection, tokenizer, tokens, ngrams, importance, pretrain, train_retriever, train_reranker, teacher,
        index_bm25, mine_bm25, mine, search_bm25, search, vectors, rerank, measures, fuse,
    )
} | {"mine_external": mine, "search_external": search, "vectors_external": vectors}  # fmt: skip
