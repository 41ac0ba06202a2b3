"""Choosing the weights of a fusion on judged queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pandas as pd

from cdmae.config.checks import read_measure
from cdmae.evaluation.measures import measure
from cdmae.retrieval.fusion import Fusion

# Steps between weight 0 and 1, by the number of systems: 21, 66 and 56 mixtures.
STEPS = {2: 20, 3: 10, 4: 5}


def mixtures(systems: int) -> Iterator[tuple[float, ...]]:
    """Yield all weights for `systems` systems that are multiples of a step and sum to 1."""
    steps = STEPS[systems]
    for parts in product(range(steps + 1), repeat=systems):
        if sum(parts) == steps:
            yield tuple(part / steps for part in parts)


def best_weights(
    fusion: Fusion, qrels: pd.DataFrame, query_ids: Sequence[str], name: str, depth: int
) -> tuple[tuple[float, ...], float]:
    """Return the weights with the highest mean of the measure `name`, and that mean.

    If means are equal, the most even weights win. The mixtures include every system alone; on these
    queries, the fusion is therefore never worse than any of its systems. depth: the depth of the
    runs, if the measure has no cutoff.
    """
    depth = min(depth, read_measure(name).params.get("cutoff", depth))

    def value(weights: tuple[float, ...]) -> float:
        return float(measure(fusion.run(weights, depth), qrels, query_ids, [name])["value"].mean())

    tried = ((weights, value(weights)) for weights in mixtures(fusion.systems))
    return max(tried, key=lambda pair: (pair[1], -max(pair[0])))
