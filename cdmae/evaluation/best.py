"""Choosing the system to use: by the queries of one split alone, over the models on disk.

Another training of a model could score differently, but it would be another model. Therefore seeds
have no part in the choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cdmae.evaluation.significance import Difference, paired


class Choice(NamedTuple):
    """The system to use, and the system with the highest mean, with its lead over the other.

    lead: None if both are the same system.
    """

    pick: str
    best: str
    lead: Difference | None


def choose(values: pd.DataFrame, complexity: Mapping[str, int]) -> Choice:
    """Choose the simplest system that no other one significantly exceeds.

    values: a row per query and a column per system. complexity: of each system, as in
    `cdmae.config.kinds.System`. Of equally complex systems, the one with the highest mean competes;
    of equal means, the first.
    """
    means = values.mean()
    best = means.idxmax()
    for level in sorted({complexity[name] for name in values}):
        alike = [name for name in values if complexity[name] == level]
        candidate = means[alike].idxmax()
        if candidate == best:
            break
        leads = {
            name: paired(values[name].to_numpy(), values[candidate].to_numpy())
            for name in values
            if name != candidate and means[name] >= means[candidate]
        }
        if not any(lead.significant for lead in leads.values()):
            return Choice(candidate, best, leads[best])
    return Choice(best, best, None)


def untuned(
    values: pd.Series, about: Mapping[str, Any], split: Sequence[str], measure: str
) -> pd.Series:
    """Replace the values of a fusion by held-out ones, if its weights were tuned on these queries.

    A fusion in which one system has all the weight is this system, and keeps its values.

    values: by query id. about: the record of the fusion's weights; empty for other systems.
    """
    if about.get("on") != list(split) or about.get("measure") != measure:
        return values
    if max(about["weights"]) == 1:
        return values
    return pd.Series(about["held_out"]).reindex(values.index)
