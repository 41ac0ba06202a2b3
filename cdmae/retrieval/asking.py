"""Answering a user's own query with a system of any kind."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cdmae.runs import Run


@functools.cache
def loaded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return function(*arguments): a model, an index or vectors, which this process keeps."""
    return function(*arguments)


@dataclass(frozen=True)
class Question:
    """A user's query.

    depth: the number of passages to rank. length: the number of word-pieces at which texts are cut;
    0 means the model's own limit. parts: the answers of the system's parts, in the order of the
    parts.
    """

    text: str
    depth: int
    length: int = 0
    parts: tuple[Run, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The passages that a system ranks for a query, and the answers of its parts."""

    run: Run
    parts: tuple[Answer, ...] = ()


def ask(system: dict[str, Any], question: Question) -> Answer:
    """Rank a system's best passages for a query, as its Snakemake rule does for a split.

    system: as made by `cdmae.commands.answering.described`: its settings, the paths that it reads,
    its `parts` in the same form, and `answered_by`, the module whose function `answer` ranks.
    """
    parts = tuple(ask(part, question) for part in system["parts"])
    whole = replace(question, parts=tuple(part.run for part in parts))
    return Answer(_module(system["answered_by"]).answer(system, whole), parts)


def encoder(system: dict[str, Any], length: int = 0, threads: int = 1) -> Any:
    """Return the encoder of a system that computes vectors, trained here or by a third party.

    system: its settings, with `encoded_by`, the module with the class `Encoder`. length: texts are
    cut at so many word-pieces, or at the system's own lengths if it is 0. The method
    `queries(texts, progress)` returns the vectors of queries, [Q, D]. `passages(source, progress)`
    returns the shards of a collection, which are encoded at every access; source: the folder of its
    tokens, or for a third party's model of its texts. Both report progress, if one is given.
    """
    return _module(system["encoded_by"]).Encoder(system, length, threads)


def _module(name: str) -> Any:
    return importlib.import_module(f"cdmae.retrieval.{name}")
