"""Choosing the weights of a fusion on judged queries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from cdmae.config.checks import read_measure
from cdmae.evaluation.measures import measure
from cdmae.retrieval.fusion import Fusion

# Steps between weight 0 and 1, by the number of systems: 21, 66 and 56 mixtures.
STEPS = {2: 20, 3: 10, 4: 5}


def mixtures(systems: int) -> list[tuple[float, ...]]:
    """List all weights for `systems` systems that are multiples of a step and sum to 1."""
    steps = STEPS[systems]
    parts = np.array(list(product(range(steps + 1), repeat=systems)))
    return list(map(tuple, (parts[parts.sum(axis=1) == steps] / steps).tolist()))


class Tuned(NamedTuple):
    """The weights with the highest mean of a measure, that mean, and values that chose nothing.

    held_out: the measure of each query, with the weights that are best on the other half of the
    queries. Their mean is what these weights are worth on queries that did not choose them.
    """

    weights: tuple[float, ...]
    value: float
    held_out: np.ndarray  # [Q]


def best_weights(
    fusion: Fusion, qrels: pd.DataFrame, query_ids: Sequence[str], name: str, depth: int
) -> Tuned:
    """Choose the weights with the highest mean of the measure `name`.

    If means are equal, the most even weights win. The mixtures include every system alone; on these
    queries, the fusion is therefore never worse than any of its systems. depth: the depth of the
    runs, if the measure has no cutoff.
    """
    depth = min(depth, read_measure(name).params.get("cutoff", depth))
    tried = mixtures(fusion.systems)
    values = np.stack(
        [
            measure(fusion.run(weights, depth), qrels, query_ids, [name])["value"].to_numpy()
            for weights in tried
        ]
    )  # [mixtures, Q]

    def best(means: np.ndarray) -> int:
        return max(range(len(tried)), key=lambda at: (means[at], -max(tried[at])))

    whole = best(values.mean(axis=1))
    held_out = np.empty(values.shape[1])
    for half in (0, 1):
        others = values[:, 1 - half :: 2]
        chosen = best(others.mean(axis=1)) if others.size else whole
        held_out[half::2] = values[chosen, half::2]
    return Tuned(tried[whole], float(values[whole].mean()), held_out)
