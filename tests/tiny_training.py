"""A collection of nonsense that can be learnt, a tiny encoder and everything else that the trainers
read.
"""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from tiny_tokenizers import write_tokens

from cdmae.collections.store import Collection, write_collection
from cdmae.config.stages import Dense, Multi, Reranker, Sparse, Stage, Unified
from cdmae.finetuning import reranker, retriever, task
from cdmae.finetuning.task import Data, FineTuning, Inputs
from cdmae.models import checkpoint
from cdmae.runs import Run, write_run
from cdmae.tokens import tokenise
from cdmae.training.loop import Schedule, Task, add_up
from cdmae.training.ranks import Ranks
from cdmae.training.setup import UNSCALED, Scaler

PASSAGES, QUERIES, LISTED = 120, 24, 20
ALONE = Ranks()


@dataclass
class TinyTask(Task):
    """A training of a network whose batches are the numbers of the steps; tests define `learn`."""

    network: torch.nn.Module
    settings: Stage
    schedule: Schedule

    def batches(self, begin):
        return iter(range(begin, self.schedule.last))


@dataclass(frozen=True)
class Tiny:
    """The folders and files; passages and queries as text."""

    collection: Path
    tokens: Path
    encoder: Path
    negatives: Path
    passages: list[str]
    queries: list[str]

    def inputs(self) -> dict[str, Path]:
        """What both trainers take."""
        return {
            name: getattr(self, name) for name in ("encoder", "collection", "tokens", "negatives")
        }


def stage(kind: str, **changed) -> Stage:
    """A recipe for the tiny collection, in float32."""
    values = {
        "queries": 6, "group": 4, "depth": 15, "random_negatives": 2, "epochs": 2.0, "learning_rate": 1e-3,
        "warmup_steps": 2, "chunk": 8, "precision": "fp32", "collection": "tiny",
    }  # fmt: skip
    if kind == "reranker":
        return Reranker(**values | {"max_length": 48, "forward_factor": 2} | changed)
    values |= {"query_length": 16, "passage_length": 32}
    if kind == "multi":
        values["dimensions"] = 12
    kinds = {"retriever": Dense, "multi": Multi, "sparse": Sparse, "unified": Unified}
    return kinds[kind](**values | changed)


def encoder(
    folder: Path, tokenizer: Path, *, dropout: float = 0.1, positions: int = 64, kind: str = "bert"
) -> Path:
    """Write a random encoder of 2 layers x 32 as `pretrain` does."""
    import transformers

    pieces = tokenise.load_tokenizer(tokenizer)
    sizes = {
        "vocab_size": len(pieces), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": positions, "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": 0.0, "initializer_range": 0.1,
    }  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(3)
        if kind == "bert":
            model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
        else:
            narrow = transformers.ElectraConfig(embedding_size=16, **sizes)
            model = transformers.ElectraModel(narrow)
        with torch.no_grad():  # biases and norms must differ from 0 and 1 to be tested
            for weights in model.parameters():
                weights.add_(torch.randn(weights.shape) * 0.02)
    model.save_pretrained(folder)
    pieces.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Thread(Ranks):
    """A process of a group, played by a thread: what it adds up lies in `table` until every one has
    read it.
    """

    table: list | None = None
    barrier: threading.Barrier | None = None

    def add_up(self, tensors) -> None:
        self.table[self.rank] = [each.clone() for each in tensors]
        self.barrier.wait()
        sums = [sum(each) for each in zip(*self.table, strict=True)]
        self.barrier.wait()
        for each, total in zip(tensors, sums, strict=True):
            each.copy_(total)


def together(size: int, work: Callable[[Ranks], object]) -> list:
    """What `work` gives in each of `size` processes."""
    table, barrier = [None] * size, threading.Barrier(size)
    group = [Thread(rank, size, table=table, barrier=barrier) for rank in range(size)]
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, group))


def gradients(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {
        name: weight.grad.clone()
        for name, weight in network.named_parameters()
        if weight.grad is not None
    }


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    """Gradients equal but for 1e-9 of the largest: in float64 no rounding hides a mistake."""
    assert first.keys() == second.keys()
    largest = max(float(gradient.abs().max()) for gradient in second.values())
    for name, gradient in first.items():
        assert float((gradient - second[name]).abs().max()) < 1e-9 * largest, name


def task_of(tiny: Tiny, recipe: Stage, model, **changed) -> FineTuning:
    """The training of a model, as its command sets it up; changed: other inputs."""
    inputs = Inputs(**tiny.inputs() | changed)
    data = Data.read(inputs, recipe, model, seed=1)
    kind = {"reranker": reranker, "retriever": retriever}[recipe.kind]
    return kind.set_up("tiny", model, data, recipe, inputs, 1, ALONE)


def task_in_float64(tiny: Tiny, recipe: Stage, folder: Path, **changed) -> FineTuning:
    """The training of a model that begins with the encoder in a folder."""
    model = checkpoint.start_model(folder, recipe.kind, seed=5, **recipe.model())
    task = task_of(tiny, recipe, model, **changed)
    task.network.double()
    return task


def learn(
    task: FineTuning, batch, *, step: int = 0, group: Ranks = ALONE, scaler: Scaler = UNSCALED
):
    """The numbers and the gradient of a step, added up over the processes."""
    task.network.zero_grad(set_to_none=True)
    numbers = replace(task, group=group).learn(batch, step, scaler)
    add_up(task.network.parameters(), numbers, group)
    return numbers, gradients(task.model.network)


def train(tiny: Tiny, folder: Path, recipe: Stage, **changed) -> Path:
    """The model that a training on the tiny collection ends with."""
    if (folder / "model").exists():  # whose state the workflow would have deleted
        shutil.rmtree(folder / "state", ignore_errors=True)
    names = {field.name for field in fields(Inputs)}
    files = Inputs(**tiny.inputs() | {key: changed.pop(key) for key in names & changed.keys()})
    how = {"name": "tiny", "settings": recipe, "seed": 1, "threads": 1, "state": folder / "state"}
    task.train(**how | changed, files=files, output=folder / "model")
    return folder / "model"


def untrained(folder: Path, encoder: Path, recipe: Stage) -> Path:
    """Write the model that a training begins with into a new folder; return the folder."""
    model = checkpoint.start_model(encoder, recipe.kind, seed=3, **recipe.model())
    folder.mkdir()
    checkpoint.save(folder, model, encoder, {"steps": 1})
    return folder


def write_teacher(path: Path) -> Path:
    """Write scores of every passage for every query; return the path."""
    generator = np.random.default_rng(11)
    scores = [generator.normal(size=PASSAGES).astype(np.float32) for _ in range(QUERIES)]
    write_run(path, Run.of([np.arange(PASSAGES)] * QUERIES, scores))
    return path


def write_tiny(folder: Path, end: str = "") -> Tiny:
    """Write the collection and all that is made of it; `end` is put at the end of every passage."""
    generator = np.random.default_rng(7)
    letters = list("bcdfghklmnprstvz")
    words = [
        "".join(generator.choice(letters) + generator.choice(list("aeiou")) for _ in range(3))
        for _ in range(300)
    ]
    passages = [
        " ".join(generator.choice(words, size)) + end
        for size in generator.integers(3, 24, PASSAGES)
    ]
    titles = [str(generator.choice(words)) if row % 2 else "" for row in range(PASSAGES)]
    queries = [" ".join(generator.choice(passages[row].split(), 3)) for row in range(QUERIES)]
    table = pa.table(
        {"passage_id": [f"p{row}" for row in range(PASSAGES)], "title": titles, "text": passages}
    )
    asked = pd.DataFrame({"query_id": [f"q{row}" for row in range(QUERIES)], "text": queries})
    judged = pd.DataFrame(
        {"query_id": asked["query_id"], "passage_id": [f"p{r}" for r in range(QUERIES)], "grade": 1}
    )
    write_collection(folder / "c", Collection(table, {"train": asked}, {"train": judged}, {}))
    tokenise.train_tokenizer(passages, 160).save_pretrained(folder / "tokenizer")
    tokeniser = tokenise.Tokeniser(folder / "tokenizer")
    write_tokens(folder / "tokens", tokeniser.tokens(table))
    lists = [generator.choice(PASSAGES, LISTED, replace=False) for _ in range(QUERIES)]
    scores = [np.arange(LISTED, 0, -1, dtype=np.float32)] * QUERIES
    write_run(folder / "run.parquet", Run.of(lists, scores))
    joined = [f"{title} {text}".strip() for title, text in zip(titles, passages, strict=True)]
    start = encoder(folder / "encoder", folder / "tokenizer")
    return Tiny(folder / "c", folder / "tokens", start, folder / "run.parquet", joined, queries)
