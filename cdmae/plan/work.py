"""Count the work of every job: operations of networks, and the units priced in ``prices.csv``.

There is one function per rule; its docstring describes the work of the rule's job. All counts
follow from the config and the sizes of its collections.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from cdmae.config import systems
from cdmae.config.encoders import ASKED_SPLIT, QUERY_TOKENS
from cdmae.plan import flops
from cdmae.plan.flops import BACKWARD
from cdmae.plan.sizes import PIECES_A_WORD, Size

if TYPE_CHECKING:
    from cdmae.config.recipe import Stage
    from cdmae.plan.flops import Network
    from cdmae.plan.planned import Planned

TYPES = 95.0  # distinct words, divided by the square root of the number of words (Heaps' law)
SELECT = 4000.0  # operations to select the best passages, per query and passage
PRODUCTS = 1000.0  # operations to multiply sparse vectors, per query and passage
ENTRIES = 200.0  # nonzero entries of a sparse passage vector
DIMENSIONS = 128  # of a third-party multi-vector model, and
FILLED = 32  # its word-pieces of a query: ColBERT's
CROSS = 4 / 3  # cost of a decoder's layer with attention to the passage, in encoder layers
PADDED = 2.0  # factor of the cost of encoding by sentence-transformers, because of its padding


class Work(NamedTuple):
    """The work of a job: operations of networks, and its units by their names in the table."""

    flops: float = 0.0
    units: Mapping[str, float] = MappingProxyType({})


# --- data -----------------------------------------------------------------------------------------


def collection(planned: Planned, name: str) -> Work:
    """Read, check and write the passages."""
    corpus = planned.size(name)
    documented = planned.config.collections[name].source == "pydocs"
    unit = "documented passage" if documented else "passage"
    return Work(units={unit: corpus.passages, "word": corpus.all_words})


def expansions(planned: Planned, name: str) -> Work:
    """Read every passage once, and write each of its texts with the decoder and the LM head.

    A decoder's layer attends to the text and to the passage.
    """
    settings = planned.config.collections[name].settings
    corpus = planned.size(name)
    source = settings.base.expected()
    read = Size(*source) if source else corpus  # without the texts
    network = planned.writer(name)
    passage = network.forward(read.tokens(settings.passage_length))
    text = min(settings.text_length, QUERY_TOKENS)
    written = CROSS * network.forward(text) + network.head(text)
    units = {
        "passage": corpus.passages,
        "text": settings.samples * corpus.passages,
        "weight": (1 + CROSS) * network.parameters(),
    }
    return Work(corpus.passages * (passage + settings.samples * written), units)


def keywords(planned: Planned, name: str) -> Work:
    """Look up the importance of every word of the passages."""
    corpus = planned.size(name)
    return Work(units={"passage": corpus.passages, "word": corpus.all_words})


def tokenizer(planned: Planned, start: str) -> Work:
    """Copy the tokenizer of a checkpoint, or train a tokenizer on a collection."""
    name = planned.config.starts[start].collection
    words = planned.size(name).all_words if name else 0.0
    return Work(units={"word": words, "distinct word": TYPES * math.sqrt(words)})


def tokens(planned: Planned, start: str, name: str) -> Work:
    """Write word-pieces as integers, and the offsets of passages and their texts.

    Tokenizers other than BERT's take longer. They have two numbers per word-piece, for the
    beginning and for the rest of a word, and may need uint32.
    """
    corpus = planned.size(name)
    pieces = corpus.all_words * PIECES_A_WORD
    numbers = planned.initial_network(start).vocabulary
    unit = "piece"
    if not flops.is_word_piece(planned.config.starts[start]):
        numbers = 2 * numbers
        unit = "whole piece"
    width = 2 if numbers <= 1 << 16 else 4
    return Work(units={"passage": corpus.passages, unit: pieces, "byte": width * pieces})


def ngrams(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Count the n-grams at every word."""
    words = planned.size(name).all_words
    orders = planned.config.importance[entry].window
    return Work(units={"word": words, "count": orders * words})


def importance(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Write the importance of every word-piece."""
    words = planned.size(name).all_words
    return Work(units={"word": words, "piece": PIECES_A_WORD * words})


# --- training -------------------------------------------------------------------------------------


def _states(network: Network) -> int:
    """Count the numbers per word-piece that a layer keeps for the backward pass."""
    return 10 * network.width + 2 * network.inners * network.inner


def pretrain(planned: Planned, name: str) -> Work:
    """Pre-train an encoder up to the last step that is needed."""
    encoder = planned.config.encoders[name]
    network = planned.initial_network(encoder.start)
    weights = network.parameters()
    corpus = planned.size(encoder.collection)
    by_query = encoder.asked and not encoder.texts
    read = corpus.queries.get(ASKED_SPLIT, 0) if by_query else corpus.passages
    whole = math.ceil(encoder.epochs * read / encoder.batch)
    steps = encoder.take_step or encoder.steps or whole
    return Work(
        steps * encoder.batch * flops.passage(network, encoder, corpus),
        {
            "weight": weights,
            "trained weight": weights,
            "state": (encoder.passes * network.layers + encoder.held_layers) * _states(network),
            "vocabulary entry": network.vocabulary,
            "kept number": encoder.kept(network),
            "joined piece": PIECES_A_WORD * corpus.all_words if encoder.asked else 0,
        },
    )


def untrained(planned: Planned, name: str) -> Work:
    """Copy the weights of a checkpoint, or draw random ones."""
    network = planned.initial_network(planned.config.encoders[name].start)
    return Work(units={"weight": network.parameters()})


def _training(planned: Planned, name: str) -> tuple[Stage, Size, int, dict[str, float]]:
    """Return a system's stage, collection, number of queries, and the units of its texts."""
    stage = planned.config.stages[planned.config.systems[name].stage]
    corpus = planned.size(stage.collection)
    (judged,) = planned.queries([systems.trains_on(planned.config, name)])
    queries = min(judged, stage.train_queries or judged)
    seen = round(stage.epochs * (queries // stage.queries * stage.queries))
    texts = {"passage": float(corpus.passages), "candidate": float(queries * stage.depth)}
    return stage, corpus, seen, texts


def _trained(network: Network, stage: Stage, longest: int) -> dict[str, float]:
    """Count weights, and the activations of one chunk of texts."""
    rows = min(stage.chunk, stage.queries * stage.group) * longest
    return {
        "weight": network.parameters(),
        "trained weight": network.parameters(),
        "activation": rows * network.layers * _states(network),
    }


def train_retriever(planned: Planned, name: str) -> Work:
    """Train on a group of passages and the query; gradient caching adds a forward pass.

    A sparse head computes its logits once. Its backward pass multiplies sparse matrices, which are
    not counted. A regression on term recall reads one passage per query, once.
    """
    stage, corpus, queries, texts = _training(planned, name)
    network = planned.network(name)
    longest = stage.passage_length
    cached = stage.queries * stage.group > stage.chunk
    forward = 1 + cached
    tokens = corpus.tokens(longest)
    group = stage.group * network.forward(tokens) + network.forward(QUERY_TOKENS)
    operations = (forward + BACKWARD) * group
    units = texts | _trained(network, stage, longest)
    if stage.head == "sparse" and stage.target == "recall":
        return Work(queries * (1 + BACKWARD) * network.forward(tokens), units)
    if stage.head in ("sparse", "unified"):
        operations += _head(planned, name, QUERY_TOKENS)
        operations += stage.group * _head(planned, name, tokens)
        units["batch entry"] = stage.queries * (1 + stage.group) * network.vocabulary
    if stage.head == "multi":
        width, asked, of_cls = _multi(planned, name)
        passages = stage.queries * stage.group
        compared = passages if stage.in_batch else stage.group
        operations += 2.0 * width * asked * compared * (tokens + of_cls)
        rows = stage.queries * asked
        entries = rows + passages * (tokens + of_cls)
        units["batch entry"] = width * entries + rows * compared
    second = planned.config.systems[name].in_batch_teacher
    if second:
        network = planned.network(second)
        operations += stage.group * network.forward(tokens) + network.forward(QUERY_TOKENS)
        units["weight"] += network.parameters()
    together = planned.config.systems[name].joint_teacher
    if together:
        network = planned.network(together)
        pair = _pair(_longest_pair(planned, together), corpus)
        operations += stage.group * (forward + BACKWARD) * network.forward(pair)
        units["weight"] += network.parameters()
        units["trained weight"] += network.parameters()
    return Work(queries * operations, units)


def stage_of(planned: Planned, name: str) -> Stage | None:
    """Return the stage that trained a system's model; None for a third-party model."""
    owner = planned.config.systems[name].model_of(planned.config, name)
    return planned.config.stages[planned.config.systems[owner].stage] if owner else None


def _multi(planned: Planned, name: str) -> tuple[int, float, int]:
    """Return a multi-vector system's dimensions, rows per query, and rows of a [CLS] vector."""
    stage = stage_of(planned, name)
    if stage is None:
        return DIMENSIONS, FILLED, 0
    if stage.match == "equal":
        of_cls = math.ceil(stage.cls_dimensions / stage.dimensions)
        return stage.dimensions, QUERY_TOKENS + of_cls, of_cls
    filled = stage.expansion != "none"
    return stage.dimensions, stage.query_length if filled else QUERY_TOKENS, 0


def _head(planned: Planned, name: str, tokens: float) -> float:
    """Count the operations of a system's language-model head on a text; 0 without such a head."""
    stage = stage_of(planned, name)
    if stage is None:
        reads = planned.config.systems[name].is_sparse(planned.config)
    else:
        reads = stage.head == "unified" or (stage.head == "sparse" and stage.pieces == "all")
    if not reads:
        return 0.0
    return planned.network(name).head(tokens)


def _pair(longest: int, corpus: Size) -> float:
    """Return the word-pieces of a query and a passage as a reranker reads them."""
    return min(longest, QUERY_TOKENS + corpus.tokens(longest))


def _longest_pair(planned: Planned, name: str) -> int:
    """Return the length at which a reranker's pairs are cut, in word-pieces."""
    return planned.config.stages[planned.config.systems[name].stage].max_length


def train_reranker(planned: Planned, name: str) -> Work:
    """Score all pairs of a query's group, and train on the best pairs, twice with R-Drop."""
    stage, corpus, queries, texts = _training(planned, name)
    network = planned.network(name)
    longest = stage.max_length
    repeats = 2 if stage.rdrop > 0 else 1
    trained = stage.group / stage.forward_factor * (1 + BACKWARD) * repeats
    pairs = (stage.group + trained) * network.forward(_pair(longest, corpus))
    return Work(queries * pairs, texts | _trained(network, stage, longest))


def teacher(planned: Planned, student: str) -> Work:
    """Score all of a student's candidates, or only the drawn candidates, with a reranker."""
    stage, corpus, queries, texts = _training(planned, student)
    name = planned.config.systems[student].teacher
    network = planned.network(name)
    candidates = stage.depth + stage.random_negatives
    drawn = candidates
    if not stage.drawn().get("whole_pool"):
        drawn = min(candidates, (stage.group - 1) * math.ceil(stage.epochs))
    pairs = queries / max(1.0, stage.epochs) * (1 + drawn)
    operations = pairs * network.forward(_pair(_longest_pair(planned, name), corpus))
    return Work(operations, texts | {"weight": network.parameters(), "pair": pairs})


# --- search ---------------------------------------------------------------------------------------


def index_bm25(planned: Planned, name: str) -> Work:
    """Write Lucene's index."""
    return Work(units={"word": planned.size(name).all_words})


def searched(planned: Planned, name: str, mined: tuple[str, ...]) -> dict[str, float]:
    """Count the queries of a search, the passages compared with them, and the hits.

    mined: the (collection, split) of training queries; empty: everything that is evaluated.
    """
    depth = planned.config.evaluation.depth
    targets = systems.targets(planned.config)
    if mined:
        depth = systems.mined(planned.config)[name, *mined]
        targets = [mined]
    queries = planned.queries(targets)
    passages = [planned.size(collection).passages for collection, _ in targets]
    compared = sum(number * size for number, size in zip(queries, passages, strict=True))
    return {"query": sum(queries), "scanned passage": compared, "hit": depth * sum(queries)}


def search_bm25(planned: Planned, name: str, *mined: str) -> Work:
    """Search by BM25 for everything that is evaluated, or for training queries."""
    return Work(units=searched(planned, name, mined))


def search(planned: Planned, name: str, *mined: str) -> Work:
    """Search with a retriever for everything that is evaluated, or for training queries."""
    network = planned.network(name)
    found = searched(planned, name, mined)
    operations = found["query"] * network.forward(QUERY_TOKENS)
    operations += found["query"] * _head(planned, name, QUERY_TOKENS)
    unified = planned.config.systems[name].is_unified(planned.config)
    if planned.config.systems[name].is_sparse(planned.config) or unified:
        operations += found["scanned passage"] * PRODUCTS
    if planned.config.systems[name].is_multi(planned.config):
        operations += _late(planned, name, mined, found)
    elif not planned.config.systems[name].is_sparse(planned.config):
        operations += found["scanned passage"] * (2.0 * network.width + SELECT)
    units = {"hit": found["hit"], "weight": network.parameters()}
    if not systems.keeps_vectors(planned.config, name):  # the search encodes the passages
        collections = mined[:1] or planned.config.evaluation.collections
        operations += sum(vectors(planned, name, each).flops for each in collections)
        units["encoder"] = 1
    return Work(operations, units)


def _late(planned: Planned, name: str, mined: tuple[str, ...], found: dict[str, float]) -> float:
    """Count the operations that compare the vectors of queries with those of passages."""
    system = planned.config.systems[name]
    width, asked, of_cls = _multi(planned, name)
    targets = [mined] if mined else systems.targets(planned.config)
    collections = dict.fromkeys(collection for collection, _ in targets)
    tokens = max(_passage_tokens(planned, name, each) for each in collections)
    pairs = found["scanned passage"]
    if system.candidates:
        pairs = min(pairs, found["query"] * system.candidates_depth)
    return pairs * 2.0 * width * asked * (tokens + of_cls)


def search_feedback(planned: Planned, name: str, *mined: str) -> Work:
    """Search like the dense system; the cost of reading the feedback is negligible."""
    return search(planned, planned.config.systems[name].parts()[0], *mined)


def vectors(planned: Planned, name: str, on: str) -> Work:
    """Encode passages into float32 vectors."""
    system = planned.config.systems[name]
    network = planned.network(name)
    corpus = planned.size(on)
    padded = PADDED if system.model else 1.0
    tokens = _passage_tokens(planned, name, on)
    operations = network.forward(tokens) + _head(planned, name, tokens)
    components: float = network.width
    if system.is_sparse(planned.config):
        components = 2 * ENTRIES  # a weight and its word-piece
    if system.is_unified(planned.config):
        components += 2 * ENTRIES
    if system.is_multi(planned.config):
        dimensions, _, of_cls = _multi(planned, name)
        rows = tokens + of_cls
        components = rows * (dimensions / 2 + 2)  # float16; a passage and a word-piece
    operations *= corpus.passages * padded
    units = {"weight": network.parameters(), "component": corpus.passages * components}
    return Work(operations, units)


def vectors_head(planned: Planned, name: str, on: str) -> Work:
    """Link the vectors of one head."""
    return Work()


def _passage_tokens(planned: Planned, name: str, on: str) -> float:
    """Return the mean word-pieces of a collection's passages as a system reads them."""
    system = planned.config.systems[name]
    stage = stage_of(planned, name)
    if stage is None:
        longest = system.passage_length or flops.longest(system.model)
    else:
        longest = stage.passage_length
    return planned.size(on).tokens(planned.config.evaluation.lengths.get(on, 0) or longest)


def sparsity(planned: Planned, name: str) -> Work:
    """Encode the queries of a sparse retriever, and count the entries of its vectors."""
    network = planned.network(name)
    queries = sum(planned.evaluated)
    encoded = network.forward(QUERY_TOKENS) + _head(planned, name, QUERY_TOKENS)
    return Work(queries * encoded, {"weight": network.parameters()})


def rerank(planned: Planned, name: str) -> Work:
    """Rerank the best passages of every query that is evaluated."""
    system = planned.config.systems[name]
    evaluation = planned.config.evaluation
    network = planned.network(name)
    longest = planned.config.stages[system.stage].max_length
    operations = 0.0
    for (on, _), queries in zip(systems.targets(planned.config), planned.evaluated, strict=True):
        tokens = _pair(evaluation.lengths.get(on, 0) or longest, planned.size(on))
        operations += queries * system.depth * network.forward(tokens)
    hits = sum(planned.evaluated) * evaluation.depth
    units = {"weight": network.parameters(), "hit": hits, "hit read": planned.largest_run}
    return Work(operations, units)


def measures(planned: Planned, name: str) -> Work:
    """Compute all measures of every query."""
    return Work(units={"query": sum(planned.evaluated), "hit read": planned.largest_run})


def weights(planned: Planned, name: str) -> Work:
    """Fuse and measure the queries of a split with every combination of weights."""
    system = planned.config.systems[name]
    queries = sum(planned.queries([system.tuned_on])) if system.tuned_on else 0
    return Work(units={"query": queries, "hit read": planned.largest_run * len(system.of)})


def fuse(planned: Planned, name: str, *mined: str) -> Work:
    """Add up the weighted scores of several runs, and sort the passages."""
    found = searched(planned, name, mined)
    votes = found["hit"] * len(planned.config.systems[name].of)
    return Work(units={"query": found["query"], "hit": found["hit"], "vote": votes})


def report(planned: Planned, name: str) -> Work:
    """Make tables, figures and significance tests from the measures of every query."""
    compared = len(planned.config.systems) * sum(planned.evaluated)
    return Work(units={"compared query": compared, "hit read": planned.largest_run})
