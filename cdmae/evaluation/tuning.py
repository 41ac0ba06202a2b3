"""Weights of a fusion, chosen on judged queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pandas as pd

from cdmae.config.checks import read_measure
from cdmae.evaluation.measures import measure
from cdmae.retrieval.fusion import Fusion

STEPS = {2: 20, 3: 10, 4: 5}  # between weight 0 and 1, by the number of systems: 21, 66, 56 mixtures


def mixtures(systems: int) -> Iterator[tuple[float, ...]]:
    """Yield all weights of so many systems that are whole steps and sum to 1, each system alone among them."""
    steps = STEPS[systems]
    for parts in product(range(steps + 1), repeat=systems):
        if sum(parts) == steps:
            yield tuple(part / steps for part in parts)


def best_weights(
    fusion: Fusion, qrels: pd.DataFrame, query_ids: Sequence[str], name: str, depth: int
) -> tuple[tuple[float, ...], float]:
    """Return the weights with the highest mean of the measure `name`, and that mean; of equal ones the most even.

    Each system alone is among what is tried, so on these queries no part of the fusion is better than it. `depth`: of
    the runs, for measures that name none.
    """
    depth = min(depth, read_measure(name).params.get("cutoff", depth))

    def value(weights: tuple[float, ...]) -> float:
        return float(measure(fusion.run(weights, depth), qrels, query_ids, [name])["value"].mean())

    return max(
        ((weights, value(weights)) for weights in mixtures(fusion.systems)),
        key=lambda tried: (tried[1], -max(tried[0])),
    )
