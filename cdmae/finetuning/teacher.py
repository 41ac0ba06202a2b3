"""What a student learns from besides judgments: a run with scores of all that it draws (section
3.4, stage 3).

Training must not go on without a score that it was asked to learn from, nor for hours before it
notices: scores that lack, and scores that tell nothing, are refused before the first step.

Shapes: `B` queries of a batch, `N` passages per query, `E'` examples that are looked up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.errors import InputError
from cdmae.finetuning.groups import Examples
from cdmae.runs import Run, read_run

UNSURE = 0.85  # of the entropy of guessing, above which a teacher tells next to nothing


@dataclass(frozen=True)
class Teacher:
    """What a student learns from: a run over all that the student draws, and the name of its file.

    It is a reranker's, made for the student, or that of others, which limits what the student
    draws.
    """

    run: Run
    name: str

    @classmethod
    def read(cls, path: Path) -> Teacher:
        """Read the run, which must be there: training must not go on without what it was asked to
        learn from.
        """
        if not path.exists():
            raise InputError(
                f"the teacher's scores {path} do not exist; make them, or train without a teacher"
            )
        return cls(read_run(path), str(path))

    def scores(self, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """Return the scores of the groups of some queries: [B], [B, N] -> float32 [B, N].

        Raises `InputError` where one is missing.
        """
        scores = np.empty(passages.shape, dtype=np.float32)
        for row, query in enumerate(queries):
            known, values = self.run.ranked(query)
            order = np.argsort(known, kind="stable")
            place = np.minimum(
                np.searchsorted(known, passages[row], sorter=order), max(len(known) - 1, 0)
            )
            missing = (
                known[order[place]] != passages[row]
                if len(known)
                else np.ones(len(passages[row]), dtype=bool)
            )
            if missing.any():
                raise InputError(
                    f"the teacher's scores {self.name} lack passage {passages[row][missing][0]} of query {query}; they "
                    "were made with other negatives, depth, group, random_negatives, epochs or seed: delete the file"
                )
            scores[row] = values[order[place]]
        return scores

    def check(self, examples: Examples, epochs: int) -> None:
        """Look up a thousand examples of every epoch: scores made for another training fail at
        once, not in hours.
        """
        if len(self.run) <= examples.queries.max(initial=-1):
            raise InputError(
                f"{self.name} has {len(self.run)} queries, too few for the training queries; delete it and run again"
            )
        rows = _thousand(examples)
        for epoch in range(epochs):
            self.scores(examples.queries[rows], examples.draw(rows, epoch))

    def check_worth(self, examples: Examples, alpha: float, name: str) -> None:
        """Refuse a teacher that cannot tell the passages of a group apart where the student hears
        little else.

        With `alpha` below 1, the weight of the contrastive loss (equation 11), such a student
        learns to tell nothing apart, either: it ends below its own start.
        """
        if alpha >= 1:
            return
        rows = _thousand(examples)
        scores = self.scores(examples.queries[rows], examples.draw(rows, 0)).astype(
            np.float64
        )  # [E', N]
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        entropy = -(shares * np.log(shares.clip(1e-300))).sum(1).mean() / math.log(scores.shape[1])
        if entropy >= UNSURE:
            right = (scores[:, 0] > scores[:, 1:].max(1)).mean()
            raise InputError(
                f"alpha of {name} is {alpha:g}, and its teacher's scores have {entropy:.0%} of the entropy of guessing "
                f"and put the positive first in {right:.0%} of the groups (chance: {1 / scores.shape[1]:.0%}): there "
                "is little to learn from them; allowed: alpha from 1, or a teacher that can tell (a reranker with more "
                "training queries, more epochs, another learning rate; a run whose scores lie further apart)"
            )


def _thousand(examples: Examples) -> np.ndarray:
    """Return a thousand examples from one end to the other, or all: int64 [E']."""
    return np.linspace(0, len(examples) - 1, min(len(examples), 1000)).astype(np.int64)
