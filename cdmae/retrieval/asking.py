"""Answering a user's own query with a system of any kind."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.vectors import Vectors


@dataclass(frozen=True)
class Question:
    """A user's query.

    depth: the number of passages to rank. length: the number of word-pieces at which texts are cut;
    0 means the model's own limit. parts: the answers of the system's parts, in their order.
    """

    text: str
    depth: int
    length: int = 0
    threads: int = 1
    parts: tuple[Run, ...] = ()


def ask(system: dict[str, Any], text: str, depth: int, *, length: int = 0, threads: int = 1) -> Run:
    """Rank a system's best `depth` passages for a text, as its Snakemake rule does for a split.

    system: the result of the system's `asked` (`cdmae.config.kinds`). It contains its settings, the
    paths that it reads, its `parts` in the same form, and `answered_by`, the module whose `answer`
    ranks. length: the number of word-pieces at which texts are cut; 0 means the model's own limit.
    """
    runs = [ask(part, text, depth, length=length, threads=threads) for part in system["parts"]]
    question = Question(text, depth, length, threads, tuple(runs))
    return _module(system["answered_by"]).answer(system, question)


def encode(system: dict[str, Any], texts: list[str], length: int = 0, threads: int = 1) -> Vectors:
    """Encode queries with a system that computes vectors: float32 [Q, D]."""
    return _module(system["encoded_by"]).encode_asked(system, texts, length, threads)


def _module(name: str) -> Any:
    return importlib.import_module(f"cdmae.retrieval.{name}")
