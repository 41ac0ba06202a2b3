"""Estimate a run before it begins: the operations of its networks, GPU-hours, and disk.

Operations follow from the config and the sizes of its collections. The hours divide them by the
speed of a device, and add the time in which jobs start. The time of other work, such as counting,
BM25 and measures, is left out. A multiplication and an addition count as two operations.

Symbols: `d` width, `f` inner width, `V` vocabulary, `n` tokens of a text, special ones included.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from tabulate import tabulate

from cdmae import formats
from cdmae.config import pretrained, systems
from cdmae.config.encoders import Pretraining
from cdmae.config.schema import Config
from cdmae.config.starts import Start
from cdmae.plan.machine import Machine

TRAINED = (
    3  # a forward pass with its backward pass, which costs two: gradients of inputs and weights
)
PIECES_A_WORD = 1.35  # BERT's; punctuation counts as words
KEYS = {  # of config.json
    "layers": "num_hidden_layers", "width": "hidden_size", "inner": "intermediate_size",
    "vocabulary": "vocab_size",
}  # fmt: skip
QUERY_TOKENS = 10.0  # mean word-pieces of a query
WEIGHT = 4  # bytes of a float32
HIT = 8  # bytes of a passage and its score in a run
WORD = 12  # bytes of a word in a collection, its index, its word-pieces and their counts
START_UP = 8.0  # seconds per result in which its jobs start: imports, mostly
LENGTH = 256  # word-pieces at which third-party models cut texts
NUMBERS = {"sparse": 400, "multi": 8192}  # in a passage's vectors; otherwise the width


@dataclass(frozen=True)
class Size:
    """The number of passages, their mean number of words, and the number of queries by split."""

    passages: int
    words: float
    queries: dict[str, int]

    def tokens(self, longest: int) -> float:
        """Return the mean word-pieces of a passage cut at L, including [CLS] and [SEP].

        It is m - exp(-2 L / m) (m + L) for gamma distributed lengths with shape 2 and mean m.
        """
        mean = self.words * PIECES_A_WORD
        room = longest - 2
        return 2 + mean - math.exp(-2 * room / mean) * (mean + room) if mean else 2.0


@dataclass(frozen=True)
class Network:
    """The dimensions of a Transformer encoder; the defaults are BERT base's."""

    layers: int = 12
    width: int = 768
    inner: int = 3072
    vocabulary: int = 30522

    @classmethod
    def of(cls, start: Start) -> Network:
        """Return the dimensions of an initial checkpoint's network."""
        if start.checkpoint:
            return cls.read(start.checkpoint)
        return cls(start.layers, start.hidden, start.feedforward, start.vocabulary)

    @classmethod
    def read(cls, model: str) -> Network:
        """Return the dimensions of a model in a folder; BERT base's if its files do not tell."""
        sizes = {name: pretrained.number(model, key) for name, key in KEYS.items()}
        return cls(**{name: size for name, size in sizes.items() if size})

    def parameters(self) -> int:
        """Return the weights of the layers' matrices and of the embeddings."""
        return self.layers * self.weights + self.vocabulary * self.width

    @property
    def weights(self) -> int:
        """Return the weights of a layer's matrices, 4 d^2 + 2 d f."""
        return 4 * self.width**2 + 2 * self.width * self.inner

    def layer(self, tokens: float) -> float:
        """Count a layer's operations on n tokens: 2 n per weight, and 4 n^2 d for attention."""
        return 2 * tokens * self.weights + 4 * tokens**2 * self.width

    def forward(self, tokens: float) -> float:
        """Count the operations of all layers on a text of n tokens."""
        return self.layers * self.layer(tokens)

    def head(self, tokens: float) -> float:
        """Count the language-model head's operations: transform d x d, vocabulary d x V."""
        return 2 * tokens * (self.width + self.vocabulary) * self.width


def passage_cost(network: Network, encoder: Pretraining, corpus: Size) -> float:
    """Count the operations of pre-training on a passage of several spans, forward and backward.

    They are those of the encoder, its decoders and a head at the masked words. What only some
    objectives have, such as a generator, is left out.
    """
    n = corpus.tokens(encoder.spans * encoder.max_length) / encoder.spans
    decoders = encoder.held_layers if encoder.decoder_layers else 0
    layers = encoder.passes * network.layers + decoders
    masked = encoder.encoder_ratio + getattr(encoder, "decoder_ratio", 0.0)
    return encoder.spans * TRAINED * (layers * network.layer(n) + network.head(masked * n))


class Estimate(NamedTuple):
    """The operations of a result's networks, and its bytes."""

    part: str
    name: str
    flops: float
    disk: float


class Plan:
    """A config with the sizes of its collections."""

    def __init__(self, config: Config) -> None:
        """Take a checked config."""
        self.config = config
        self.sizes = {}
        for name, collection in config.collections.items():
            expected = collection.ask(name, "expected")
            owner = config.owner(name)
            if owner != name:
                passages, words, _ = config.collections[owner].settings.expected()
                expected = passages, words, expected[2]
            self.sizes[name] = Size(*expected)

    def estimates(self) -> list[Estimate]:
        """Estimate every result that takes networks or space, in the order of the data."""
        config = self.config
        found = []
        for name, size in self.sizes.items():
            found.append(Estimate("collections", name, 0.0, WORD * size.passages * size.words))
        for name in systems.needed_encoders(config):
            encoder = config.encoders[name]
            operations = self.pretraining(name) if encoder.pretrained else 0.0
            disk = WEIGHT * Network.of(config.starts[encoder.start]).parameters()
            found.append(Estimate("pre-training", name, operations, disk))
        for name in systems.trained(config):
            disk = 2 * WEIGHT * self.network(name).parameters()  # of the trained model and its copy
            found.append(Estimate("fine-tuning", name, self.training(name), disk))
        for name in systems.taught(config):
            if systems.taught_like(config, name) == name:
                found.append(Estimate("teachers", name, self.teacher(name), 0.0))
        for name in config.systems:
            found.append(Estimate("searches", name, *self.searching(name)))
        return found

    def network(self, system: str) -> Network:
        """Return the network of a system with a model."""
        entry = self.config.systems[system]
        if entry.model:
            return Network.read(entry.model)
        trained = systems.model_of(self.config, system)
        return Network.of(self.config.starts[systems.start_of(self.config, trained)])

    def pretraining(self, name: str) -> float:
        """Count the operations of pre-training up to the last step that is needed."""
        encoder = self.config.encoders[name]
        corpus = self.sizes[encoder.collection]
        whole = math.ceil(encoder.epochs * corpus.passages / encoder.batch)
        steps = encoder.take_step or encoder.steps or whole
        network = Network.of(self.config.starts[encoder.start])
        return steps * encoder.batch * passage_cost(network, encoder, corpus)

    def training(self, name: str) -> float:
        """Count the operations of a stage; what only some stages have is left out.

        Retrievers compute groups twice forward (gradient caching) and once backward. Rerankers
        score groups, and train on their best pairs.
        """
        system = self.config.systems[name]
        stage = self.config.stages[system.stage]
        passes: float = 1 + TRAINED
        if system.kind == "reranker":
            repeats = 2 if stage.rdrop > 0 else 1
            passes = 1 + TRAINED * repeats / stage.forward_factor
        return self.queries(name) * passes * stage.group * self.text(name, stage.collection)

    def queries(self, name: str) -> float:
        """Return the number of queries that a system is trained on, in all epochs."""
        stage = self.config.stages[self.config.systems[name].stage]
        judged = self.sizes[stage.collection].queries.get(stage.split, 0)
        return stage.epochs * min(judged, stage.train_queries or judged)

    def teacher(self, student: str) -> float:
        """Count the operations of scoring a student's candidates, or only the drawn ones."""
        system = self.config.systems[student]
        stage = self.config.stages[system.stage]
        drawn = stage.depth + stage.random_negatives
        if not stage.drawn().keys() & {"whole_pool", "labelled"}:
            drawn = min(drawn, (stage.group - 1) * math.ceil(stage.epochs))
        queries = self.queries(student) / max(1.0, stage.epochs)
        return queries * (1 + drawn) * self.text(system.teacher, stage.collection)

    def searching(self, name: str) -> tuple[float, float]:
        """Count the operations of encoding passages or of reranking, and the bytes they take."""
        system = self.config.systems[name]
        operations = disk = 0.0
        if system.encoded_by:
            mined = [on for owner, on, _ in systems.mined(self.config) if owner == name]
            for collection in dict.fromkeys([*self.config.evaluation.collections, *mined]):
                passages = self.sizes[collection].passages
                operations += passages * self.text(name, collection)
                numbers = NUMBERS.get(system.vectors(self.config), self.network(name).width)
                if systems.keeps_vectors(self.config, name):
                    disk += WEIGHT * numbers * passages
        for collection, split in systems.targets(self.config):
            queries = self.sizes[collection].queries.get(split, 0)
            disk += HIT * self.config.evaluation.depth * queries
            if system.kind == "reranker":
                operations += queries * system.depth * self.text(name, collection)
        return operations, disk

    def text(self, name: str, collection: str) -> float:
        """Count the operations of a system's network on a passage, or a reranker's on a pair."""
        system = self.config.systems[name]
        trained = systems.model_of(self.config, name)
        stage = self.config.stages[self.config.systems[trained].stage] if trained else None
        network = self.network(name)
        longest = system.passage_length if system.model else 0
        if stage:
            longest = stage.max_length if system.kind == "reranker" else stage.passage_length
        longest = self.config.evaluation.lengths.get(collection, 0) or longest or LENGTH
        tokens = self.sizes[collection].tokens(longest)
        if system.kind == "reranker":
            tokens = min(longest, QUERY_TOKENS + tokens)
        is_sparse = system.vectors(self.config) in ("sparse", "unified")
        return network.forward(tokens) + (network.head(tokens) if is_sparse else 0.0)


def text(plan: Plan, machine: Machine) -> str:
    """Return the plan of a run: a table with a row per part, its sums, and what they rest on."""
    estimates = pd.DataFrame(plan.estimates(), columns=Estimate._fields)
    rows = []
    for part, own in estimates.groupby("part", sort=False):
        operations = own["flops"].sum()
        time = formats.duration(operations / machine.rate) if operations else ""
        disk = formats.memory(own["disk"].sum() / 2**20)
        rows.append((part, len(own), f"{operations:.1e}" if operations else "", time, disk))
    heads = ("part", "results", "operations", "time", "disk")
    seconds = estimates["flops"].sum() / machine.rate
    starting = START_UP * len(estimates)
    devices = f"{formats.plural(machine.cores, 'core')} without a GPU"
    if machine.gpus:
        devices = f"{machine.gpus} x {machine.gpu}, {seconds * machine.gpus / 3600:.1f} GPU-hours"
    folder = Path(plan.config.results).absolute()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    needed = estimates["disk"].sum()
    starts = [start.checkpoint for start in plan.config.starts.values()]
    named = [*starts, *(system.model for system in plan.config.systems.values())]
    assumed = [model for model in dict.fromkeys(named) if model and not Path(model).is_dir()]
    lines = [
        tabulate(rows, heads, "plain", colalign=("left", *["right"] * 4), disable_numparse=True),
        "",
        f"time   {formats.duration(seconds + starting)} or more on {devices}: the operations of "
        f"networks, and {formats.duration(starting)} to start the jobs",
        f"disk   {formats.memory(needed / 2**20)}, where {formats.memory(free / 2**20)} are free"
        f"{'' if needed <= free else ': NOT ENOUGH'}",
    ]
    if assumed:
        lines.append(f"assumed to be as large as BERT base: {formats.listed(assumed)}")
    return formats.plain_spaces("\n".join(lines))
