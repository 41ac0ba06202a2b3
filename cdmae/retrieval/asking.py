"""A user's own query, answered by a system of any kind."""

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

    depth: number of passages to rank; length: the length at which texts are cut, 0 for the model's
    own; parts: the answers of the systems that this system combines, in their order.
    """

    text: str
    depth: int
    length: int = 0
    threads: int = 1
    parts: tuple[Run, ...] = ()


def ask(system: dict[str, Any], text: str, depth: int, *, length: int = 0, threads: int = 1) -> Run:
    """Rank a system's best `depth` passages for a text, as its rule does for a split.

    system: the result of its `asked` (`cdmae.config.kinds`): its settings, the paths that it reads,
    its `parts`, which are mappings of the same form, and `answered_by`, the module with the
    function `answer`. length: the length at which texts are cut; 0: the model's own lengths.
    """
    runs = [ask(part, text, depth, length=length, threads=threads) for part in system["parts"]]
    question = Question(text, depth, length, threads, tuple(runs))
    return _module(system["answered_by"]).answer(system, question)


def encode(system: dict[str, Any], texts: list[str], length: int = 0, threads: int = 1) -> Vectors:
    """Encode queries with a system that makes vectors, as its rule does: float32 [Q, D]."""
    return _module(system["encoded_by"]).encode_asked(system, texts, length, threads)


def _module(name: str) -> Any:
    return importlib.import_module(f"cdmae.retrieval.{name}")
