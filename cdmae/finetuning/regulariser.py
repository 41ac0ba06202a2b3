"""Training a sparse head: the FLOPS regulariser, its warm-up, and checks of the vectors.

Shapes: `B` queries, `N` passages per query, `V` word-pieces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from cdmae.config.stages import Regularised
from cdmae.errors import InputError
from cdmae.finetuning import losses

# an index is of little use if the mean passage has weights for more than this share of word-pieces
SATURATED = 0.5


@dataclass(frozen=True)
class Sparsity:
    """The regulariser of the training `name`.

    steps: the number of training steps. words: the vocabulary size V.
    """

    stage: Regularised
    name: str
    steps: int
    words: int

    @property
    def warmup(self) -> int:
        """Return the number of steps until both weights reach their full values."""
        share = self.stage.flops_warmup <= 1
        return math.ceil(self.stage.flops_warmup * (self.steps if share else 1))

    def grown(self, step: int) -> float:
        """Return the factor of both weights in step t, from 0: (t / warm-up)^2, at most 1."""
        return min(1.0, ((step + 1) / max(1, self.warmup)) ** 2)

    def penalty(
        self, queries: Tensor, passages: Tensor, step: int
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the regulariser of a global batch and numbers for the curve.

        queries: [B, V]; passages: [B x N, V]. The numbers are means. flops: non-zero products per
        pair of query and passage; query_entries, passage_entries: positive weights per text.
        """
        query_weight = self.grown(step) * self.stage.query_flops
        if self.stage.query_weights != "network":
            query_weight = 0.0
        passage_weight = self.grown(step) * self.stage.passage_flops
        penalty = query_weight * losses.flops(queries) + passage_weight * losses.flops(passages)
        with torch.no_grad():
            # for each word-piece, the share of texts in which it has a weight
            in_queries = queries.count_nonzero(0) / len(queries)
            in_passages = passages.count_nonzero(0) / len(passages)
            numbers = {
                "penalty": penalty,
                "query_entries": in_queries.sum(),
                "passage_entries": in_passages.sum(),
                "flops": in_queries @ in_passages,
            }
        return penalty, numbers

    def check(self, numbers: dict[str, float], step: int) -> str:
        """Raise `InputError` if a step's vectors are all 0; return a warning if they saturated.

        They are saturated if, after the warm-up, the mean passage has weights for more than half of
        the word-pieces. numbers: the result of `penalty`; step: the step, counted from 1.
        """
        for texts, key in (("queries", "query"), ("passages", "passage")):
            if not numbers[f"{key}_entries"]:
                weight = getattr(self.stage, f"{key}_flops")
                raise InputError(
                    f"training of {self.name} collapsed: the vectors of all {texts} of step "
                    f"{step:,} are 0; lower {key}_flops (now {weight:g}) or learning_rate (now "
                    f"{self.stage.learning_rate:g}), or lengthen flops_warmup"
                )
        if step <= self.warmup or numbers["passage_entries"] <= SATURATED * self.words:
            return ""
        return (
            f"after the regulariser's warm-up, the mean passage vector had more than "
            f"{SATURATED:.0%} of the {self.words:,} possible entries: raise passage_flops (now "
            f"{self.stage.passage_flops:g}) and query_flops (now {self.stage.query_flops:g}), or "
            "train for more steps"
        )
