"""Answer queries with the systems of a run; their models and indexes stay in memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cdmae.collections.store import count_passages, read_passages, take_passages
from cdmae.retrieval.asking import Answer, Question, ask, loaded

if TYPE_CHECKING:
    from cdmae.importance.shading import Shades

Described = dict[str, Any]  # a system for `cdmae.retrieval.asking`


@dataclass(frozen=True)
class Hit:
    """A passage that a system ranks for a query.

    parts: the passage's scores in the lists of a fusion's or reranker's parts, by the name of the
    part; None if the passage is not in the part's list.
    """

    rank: int
    score: float
    row: int
    passage_id: str
    title: str
    text: str
    parts: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """The answer of one system: its best passages, and the seconds that the answer took."""

    system: str
    seconds: float
    hits: list[Hit]


class Engine:
    """The systems of a run on its collections."""

    def __init__(
        self,
        systems: Mapping[str, Mapping[str, Described]],
        folders: Mapping[str, Path],
        *,
        depth: int,
        lengths: Mapping[str, int],
        keep: bool = True,
    ) -> None:
        """Describe the systems and collections; nothing is loaded yet.

        systems: for each collection, its systems by name. folders: the folder of each collection.
        depth: the number of passages that systems rank, as in the run. lengths: the number of
        word-pieces at which the texts of a collection are cut. keep: whether passages stay in
        memory for the next query.
        """
        self.systems = systems
        self.folders = folders
        self.depth = depth
        self.lengths = lengths
        self.shades: Shades | None = None  # the importance of words, for the page
        self.keep = keep

    def search(self, text: str, system: str, collection: str, count: int) -> Result:
        """Rank the best `count` passages of a collection for a query."""
        begun = time.perf_counter()
        described = self.systems[collection][system]
        # Only a system that reads other systems' lists depends on their depth.
        depth = self.depth if described["parts"] else min(count, self.depth)
        question = Question(text, depth, self.lengths.get(collection, 0))
        answer = ask(described, question)
        hits = self._hits(described, answer, collection, count)
        return Result(system, time.perf_counter() - begun, hits)

    def pool(self, text: str, collection: str, systems: list[str], count: int) -> list[Hit]:
        """Return the union of the systems' best `count` passages."""
        found: dict[int, Hit] = {}
        for system in systems:
            for hit in self.search(text, system, collection, count).hits:
                found.setdefault(hit.row, hit)
        return list(found.values())

    def warm(self) -> None:
        """Load all models and indexes by asking every system once on every collection."""
        import torch

        torch.set_num_threads(1)  # a thread per query, and several queries at a time
        for collection, systems in self.systems.items():
            for system in systems:
                self.search("warm up", system, collection, 1)
        if self.shades:
            self.shades.spans("warm up")  # compiles the scoring

    def passages(self, collection: str) -> int:
        """Return the number of passages in a collection."""
        return loaded(count_passages, self.folders[collection])

    def _taken(self, collection: str, rows: np.ndarray) -> pa.Table:
        folder = self.folders[collection]
        if self.keep:
            return loaded(read_passages, folder).take(rows)
        return take_passages(folder, rows)

    def _hits(self, described: Described, answer: Answer, collection: str, count: int) -> list[Hit]:
        rows, scores = (values[:count] for values in answer.run.ranked(0))
        passages = self._taken(collection, rows).to_pylist()
        listed = []
        for part in answer.parts:
            ranked, values = part.run.ranked(0)
            shown = np.isin(ranked, rows)
            listed.append(dict(zip(ranked[shown].tolist(), values[shown].tolist(), strict=True)))
        names = [part["name"] for part in described["parts"]]
        hits = []
        for index, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True)):
            parts = {name: own.get(row) for name, own in zip(names, listed, strict=True)}
            passage = passages[index]
            hits.append(Hit(rank=index + 1, score=score, row=row, parts=parts, **passage))
        return hits
