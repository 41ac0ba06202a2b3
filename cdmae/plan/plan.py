"""Estimate a run before it begins: the operations of its networks, GPU-hours, and disk.

Operations follow from the config and the sizes of its collections. The hours divide them by the
speed of a device. The time of other work, such as counting, BM25 and measures, is left out.
"""

from __future__ import annotations

import math
import os
import shutil
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

from cdmae import formats
from cdmae.config import systems
from cdmae.config.encoders import ASKED_SPLIT, QUERY_TOKENS
from cdmae.layout import place
from cdmae.plan import flops
from cdmae.plan.flops import BACKWARD, Network
from cdmae.plan.machine import NOTES, Machine
from cdmae.plan.sizes import PIECES_A_WORD, Size, size

if TYPE_CHECKING:
    from cdmae.config.recipe import Stage
    from cdmae.config.schema import Config

DIMENSIONS = 128  # of a third-party multi-vector model: ColBERT's
CROSS = 4 / 3  # cost of a decoder's layer with attention to the passage, in encoder layers
ENTRIES = 200  # nonzero entries of a sparse passage vector
WEIGHT = 4  # bytes of a float32
HIT = 8  # bytes of a passage and its score in a run
TEXT = 3.6  # bytes of a word: 6 in English, of which Parquet keeps 0.6
INDEX = 2.5  # bytes of a word in Lucene's index (benchmarks/bm25.py)
PIECE = 2  # bytes of a word-piece, and of its importance
COUNT = 4  # bytes of the count of an n-gram, for each word and each length of n-grams


class Estimate(NamedTuple):
    """The operations of a result's networks, and its bytes.

    done: whether the result exists. float32: whether GPUs compute in float32.
    """

    part: str
    name: str
    flops: float
    disk: float
    done: bool
    float32: bool = False

    def seconds(self, machine: Machine) -> float:
        """Return the time of the operations on all GPUs of a machine, or on all its cores."""
        return self.flops / machine.rate(machine.cores, machine.gpus, self.float32)


class Plan:
    """A config with the sizes of its collections and the dimensions of its networks."""

    def __init__(self, config: Config) -> None:
        """Take a checked config; sizes and networks are read when they are needed."""
        self.config = config
        self._networks: dict[str, Network] = {}

    @cached_property
    def sizes(self) -> dict[str, Size]:
        """Map each collection to its size: counted if it exists, otherwise as its source expects.

        Raises `InputError` if a size is unknown.
        """
        return {name: size(self.config, name) for name in self.config.collections}

    def queries(self, collection: str, split: str) -> int:
        """Count the queries of a split; 0 if its source does not know them."""
        return self.sizes[collection].queries.get(split, 0)

    def network(self, system: str) -> Network:
        """Return the network of a system; for feedback and heads, of the system that they use."""
        entry = self.config.systems[system]
        owner = entry.model_of(self.config, system)
        if owner and owner != system:
            return self.network(owner)
        if entry.model:
            return self.read(entry.model)
        if not entry.encoder:
            return self.network(entry.parts()[0])
        return Network.of(self.config.starts[systems.start_of(self.config, system)])

    def read(self, model: str) -> Network:
        """Return the network of a model folder or a name at the hub."""
        if model not in self._networks:
            self._networks[model] = Network.read(model)
        return self._networks[model]

    # --- results ----------------------------------------------------------------------------------

    def estimates(self) -> list[Estimate]:
        """Estimate every result of the run that takes networks or space, in the order of the data.

        Raises `InputError` if the size of a collection is unknown.
        """
        config = self.config
        found = []

        def add(part: str, what: str, name: str, *numbers: float, float32: bool = False) -> None:
            names = dict.fromkeys(("collection", "encoder", "system"), name)
            done = Path(place(config.results, what, **names)).exists()
            found.append(Estimate(part, name, *numbers, done, float32))

        for name in config.collections:
            add("collections", "collection", name, self.expansions(name), self.texts(name))
        for name, encoder in config.encoders.items():
            # a snapshot is kept by the training of another encoder
            trains = encoder.pretrained and not encoder.snapshot_of
            operations = self.pretraining(name) if trains else 0.0
            disk = WEIGHT * Network.of(config.starts[encoder.start]).parameters()
            in_float32 = trains and encoder.precision == "fp32"
            add("pre-training", "encoder", name, operations, disk, float32=in_float32)
        for name in systems.trained(config):
            is_reranker = config.systems[name].kind == "reranker"
            operations = self.reranker(name) if is_reranker else self.retriever(name)
            part = "rerankers" if is_reranker else "retrievers"
            disk = 2 * WEIGHT * self.network(name).parameters()  # of the trained model and its copy
            add(part, "trained", name, operations, disk, float32=self.in_float32(name))
        for name in systems.taught(config):
            if systems.taught_like(config, name) == name:
                in_float32 = self.in_float32(config.systems[name].teacher)
                add("teachers", "teacher", name, self.teacher(name), 0.0, float32=in_float32)
        for name, system in config.systems.items():
            operations = 0.0
            if system.kind in ("retriever", "external"):
                operations = self.encoding(name)
            elif system.kind == "reranker":
                operations = self.reranking(name)
            in_float32 = bool(operations) and self.in_float32(name)
            disk = self.searched(name)
            add("searches", "measures", name, operations, disk, float32=in_float32)
        return found

    def in_float32(self, name: str) -> bool:
        """Return whether GPUs compute a system's network in float32, as those of other programs."""
        stage = self.stage(name)
        return stage is None or stage.precision == "fp32"

    def texts(self, name: str) -> float:
        """Return the bytes of a collection: text, index, word-pieces and their counts."""
        config = self.config
        tokens = {(encoder.start, encoder.collection) for encoder in config.encoders.values()}
        tokens |= {
            (systems.start_of(config, system), systems.trains_on(config, system)[0])
            for system in systems.trained(config)
        }
        importance = {
            (encoder.importance, encoder.start)
            for encoder in config.encoders.values()
            if encoder.reads_importance and encoder.collection == name
        }
        copies = sum(collection == name for _, collection in tokens) + len(importance)
        a_word = TEXT + copies * PIECE * PIECES_A_WORD
        a_word += sum(COUNT * config.importance[each].window for each, _ in importance)
        if name in config.evaluation.collections and systems.of_kind(config, "bm25"):
            a_word += INDEX
        return self.sizes[name].all_words * a_word

    def expansions(self, name: str) -> float:
        """Count the operations that write texts for a collection's passages; 0 without a writer.

        A decoder's layer attends to the text and to the passage.
        """
        settings = self.config.collections[name].settings
        if not settings.writer:
            return 0.0
        source = settings.base.expected()
        read = Size(*source) if source else self.sizes[name]  # without the texts
        network = self.read(settings.writer)
        text = min(settings.text_length, QUERY_TOKENS)
        written = CROSS * network.forward(text) + network.head(text)
        passage = network.forward(read.tokens(settings.passage_length))
        return self.sizes[name].passages * (passage + settings.samples * written)

    def pretraining(self, name: str) -> float:
        """Count the operations of pre-training up to the last step that is needed."""
        encoder = self.config.encoders[name]
        corpus = self.sizes[encoder.collection]
        by_query = encoder.asked and not encoder.texts
        read = corpus.queries.get(ASKED_SPLIT, 0) if by_query else corpus.passages
        whole = math.ceil(encoder.epochs * read / encoder.batch)
        steps = encoder.take_step or encoder.steps or whole
        network = Network.of(self.config.starts[encoder.start])
        return steps * encoder.batch * flops.passage(network, encoder, corpus)

    def training(self, name: str) -> tuple[Stage, Size, int]:
        """Return a system's stage, its collection, and the number of queries that it trains on."""
        stage = self.config.stages[self.config.systems[name].stage]
        judged = self.queries(*systems.trains_on(self.config, name))
        queries = min(judged, stage.train_queries or judged)
        seen = round(stage.epochs * (queries // stage.queries * stage.queries))
        return stage, self.sizes[stage.collection], seen

    def retriever(self, name: str) -> float:
        """Count the operations of training on groups; gradient caching adds a forward pass.

        A sparse head computes its logits once, and its backward pass is not counted. A regression
        on term recall reads one passage per query, once.
        """
        stage, corpus, queries = self.training(name)
        network = self.network(name)
        tokens = corpus.tokens(stage.passage_length)
        if stage.head == "sparse" and stage.target == "recall":
            return queries * (1 + BACKWARD) * network.forward(tokens)
        forward = 1 + (stage.queries * stage.group > stage.chunk)
        group = stage.group * network.forward(tokens) + network.forward(QUERY_TOKENS)
        operations = (forward + BACKWARD) * group
        operations += self.head(name, QUERY_TOKENS) + stage.group * self.head(name, tokens)
        second = self.config.systems[name].in_batch_teacher
        if second:
            network = self.network(second)
            operations += stage.group * network.forward(tokens) + network.forward(QUERY_TOKENS)
        together = self.config.systems[name].joint_teacher
        if together:
            pairs = stage.group * self.pair(together, corpus)
            operations += (forward + BACKWARD) * pairs
        return queries * operations

    def reranker(self, name: str) -> float:
        """Count the operations of scoring groups and training on their best pairs."""
        stage, corpus, queries = self.training(name)
        repeats = 2 if stage.rdrop > 0 else 1
        trained = stage.group / stage.forward_factor * (1 + BACKWARD) * repeats
        return queries * (stage.group + trained) * self.pair(name, corpus)

    def teacher(self, student: str) -> float:
        """Count the operations of scoring a student's candidates, or only the drawn ones."""
        stage, corpus, queries = self.training(student)
        drawn = stage.depth + stage.random_negatives
        if not stage.drawn().get("whole_pool"):
            drawn = min(drawn, (stage.group - 1) * math.ceil(stage.epochs))
        pairs = queries / max(1.0, stage.epochs) * (1 + drawn)
        return pairs * self.pair(self.config.systems[student].teacher, corpus)

    def encoding(self, name: str) -> float:
        """Count the operations of encoding the passages and queries that a system searches."""
        network = self.network(name)
        mined = [target for owner, *target in systems.mined(self.config) if owner == name]
        collections = [*self.config.evaluation.collections, *(on for on, _ in mined)]
        operations = 0.0
        for collection in dict.fromkeys(collections):
            tokens = self.tokens(name, collection)
            each = network.forward(tokens) + self.head(name, tokens)
            operations += self.sizes[collection].passages * each
        queries = sum(self.evaluated.values()) + sum(self.queries(*target) for target in mined)
        asked = network.forward(QUERY_TOKENS) + self.head(name, QUERY_TOKENS)
        return operations + queries * asked

    def reranking(self, name: str) -> float:
        """Count the operations of reranking the best passages of every evaluated query."""
        return sum(
            queries * self.config.systems[name].depth * self.pair(name, self.sizes[collection])
            for (collection, _), queries in self.evaluated.items()
        )

    def searched(self, name: str) -> float:
        """Return the bytes of a system's runs, and of its vectors if they are kept."""
        system = self.config.systems[name]
        runs = HIT * self.config.evaluation.depth * sum(self.evaluated.values())
        if system.kind not in ("retriever", "external"):
            return runs
        if not systems.keeps_vectors(self.config, name):
            return runs
        vectors = 0.0
        for collection in self.config.evaluation.collections:
            numbers = float(self.network(name).width)
            if system.is_sparse(self.config):
                numbers = 2 * ENTRIES  # a weight and its word-piece
            elif system.is_multi(self.config):
                stage = self.stage(name)
                width = stage.dimensions if stage else DIMENSIONS
                numbers = self.tokens(name, collection) * width / 2  # float16
            vectors += WEIGHT * numbers * self.sizes[collection].passages
        return runs + vectors

    # --- texts ------------------------------------------------------------------------------------

    @cached_property
    def evaluated(self) -> dict[tuple[str, str], int]:
        """Map each evaluated (collection, split) to its number of queries."""
        return {target: self.queries(*target) for target in systems.targets(self.config)}

    def stage(self, name: str) -> Stage | None:
        """Return the stage that trained a system's model; None for a third-party model."""
        owner = self.config.systems[name].model_of(self.config, name)
        return self.config.stages[self.config.systems[owner].stage] if owner else None

    def head(self, name: str, tokens: float) -> float:
        """Count the operations of a language-model head on a text; 0 for systems without one."""
        stage = self.stage(name)
        if stage is None:
            reads = self.config.systems[name].is_sparse(self.config)
        else:
            reads = stage.head == "unified" or (stage.head == "sparse" and stage.pieces == "all")
        return self.network(name).head(tokens) if reads else 0.0

    def pair(self, reranker: str, corpus: Size) -> float:
        """Count the operations of a forward pass of a reranker on a query and a passage."""
        longest = self.config.stages[self.config.systems[reranker].stage].max_length
        tokens = min(longest, QUERY_TOKENS + corpus.tokens(longest))
        return self.network(reranker).forward(tokens)

    def tokens(self, name: str, collection: str) -> float:
        """Return the mean word-pieces of a collection's passages as a system reads them."""
        system = self.config.systems[name]
        stage = self.stage(name)
        if stage is None:
            longest = system.passage_length or flops.longest(system.model)
        else:
            longest = stage.passage_length
        longest = self.config.evaluation.lengths.get(collection, 0) or longest
        return self.sizes[collection].tokens(longest)


def text(plan: Plan, machine: Machine) -> str:
    """Return the plan of a run: a table with a row per part, its sums, and what they rest on."""
    estimates = plan.estimates()
    due = [each for each in estimates if not each.done]
    rows = []
    for part in dict.fromkeys(each.part for each in estimates):
        left = [each for each in due if each.part == part]
        operations = sum(each.flops for each in left)
        seconds = sum(each.seconds(machine) for each in left)
        rows.append(
            (
                part,
                f"{len(left)} of {sum(each.part == part for each in estimates)}",
                f"{operations:.1e}" if operations else "",
                formats.duration(seconds) if operations else "",
                formats.memory(sum(each.disk for each in left) / 2**20),
            )
        )
    heads = ("part", "to do", "operations", "time", "disk")
    align = ("left", "right", "right", "right", "right")
    seconds = sum(each.seconds(machine) for each in due)
    devices = f"{formats.plural(machine.cores, 'core')} without a GPU"
    if machine.gpus:
        devices = f"{machine.gpus} x {machine.gpu}, {seconds * machine.gpus / 3600:.1f} GPU-hours"
    lines = [
        tabulate(rows, heads, "plain", colalign=align, disable_numparse=True),
        "",
        f"time       {formats.duration(seconds)} or more on {devices}: the operations of networks",
        *room(plan, sum(each.disk for each in due)),
        *basis(plan),
    ]
    if machine.gpu in NOTES:
        lines.append(f"{machine.gpu:<10} {NOTES[machine.gpu]}")
    return formats.plain_spaces("\n".join(lines))


def room(plan: Plan, results: float) -> list[str]:
    """Compare the bytes of the results and of the downloads with the space on their disks."""
    needs = [("disk", plan.config.results, results)]
    downloads: dict[Path, float] = {}
    for collection in plan.config.collections.values():
        downloads |= collection.settings.downloads()
    if downloads:
        needs.append(("downloads", os.path.commonpath(downloads), sum(downloads.values())))
    lines = []
    used: dict[int, float] = {}  # bytes by disk
    for what, path, needed in needs:
        folder = existing(path)
        disk = folder.stat().st_dev
        free = shutil.disk_usage(folder).free - used.get(disk, 0.0)
        used[disk] = needed
        words = "are free" if needed <= free else "are free: NOT ENOUGH"
        sizes = [formats.memory(each / 2**20) for each in (needed, max(0.0, free))]
        lines.append(f"{what:<10} {sizes[0]} in {path}, where {sizes[1]} {words}")
    return lines


def basis(plan: Plan) -> list[str]:
    """Say which sizes are counted, and which networks are not known."""
    counted = sum(each.measured for each in plan.sizes.values())
    lines = [
        f"sizes      {counted} of {len(plan.sizes)} collections counted, the others as their "
        f"sources expect, with {PIECES_A_WORD} word-pieces per word"
    ]
    starts = [start.checkpoint for start in plan.config.starts.values()]
    models = [*starts, *(system.model for system in plan.config.systems.values())]
    for model in dict.fromkeys(models):
        if model and not flops.settings_of(model):
            lines.append(f"networks   {model} is not on this machine; BERT base is assumed")
    return lines


def existing(path: str) -> Path:
    """Return the folder, or its nearest existing parent."""
    folder = Path(path).absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
