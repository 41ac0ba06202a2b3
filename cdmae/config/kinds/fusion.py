"""A fusion: the reciprocal ranks or the scores of several systems, weighted and summed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Gt, Le

from cdmae.config import systems
from cdmae.config.kinds._system import Columns, Made, System
from cdmae.errors import InputError
from cdmae.fields import Of, Real, Weight, refusal, settings, show, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config

MOST_TUNED = 4  # the most systems whose weights are tuned


@settings
class Fusion(System):
    """A weighted sum of the reciprocal ranks or scores of several systems."""

    neural = False
    answered_by = "fusion"

    kind: Literal["fusion"] = "fusion"
    """The ranks or scores of several systems, summed."""
    of: Annotated[tuple[str, ...], Of("systems")]
    """At least two systems."""
    method: Literal["reciprocal_rank", "convex"] = "reciprocal_rank"
    """The summands: 1 / (k + rank), or scores scaled to 0 .. 1 within each ranking [Cormack et al.
    2009; convex: Bruch et al. 2023].
    """
    k: Annotated[Real, Gt(0), Le(1e6)] = 60.0
    """Constant in 1 / (k + rank) [Cormack et al. 2009]."""
    weights: tuple[Weight, ...] = ()
    """Weight of each system; empty: equal weights. `tuned_on` chooses other weights."""
    tuned_on: tuple[str, ...] = ()
    """Collection and split, as in [pydocs, dev], whose judgments choose the weights by the first of
    the evaluation's measures.
    """

    def parts(self) -> list[str]:
        """Return the names of the systems that it sums."""
        return list(self.of)

    def columns(self, config: Config, name: str) -> Columns:
        """Return the run, collection, split and measure on which its weights are tuned."""
        if not self.tuned_on:
            return {"tuned_run": "", "tuned_collection": "", "tuned": []}
        collection, split = self.tuned_on
        measure = config.evaluation.measured(collection, split)[0]
        return {
            "judged": self.of,
            "tuned_run": f"{collection}.{split}",
            "tuned_collection": collection,
            "tuned": [split, measure],
        }

    def check(self, config: Config, name: str) -> None:
        """Refuse too few systems, and weights that do not match the systems."""
        if len(set(self.of)) < max(2, len(self.of)):
            raise unfit(self, "of", "; expected at least two systems, each once")
        if self.weights and (len(self.weights) != len(self.of) or not any(self.weights)):
            raise unfit(
                self, "weights", f"; expected one for each of the {len(self.of)} systems, not all 0"
            )
        targets = systems.targets(config)
        if self.tuned_on and self.tuned_on not in targets:
            choices = ", ".join(show(list(target)) for target in targets) or "an evaluated split"
            raise unfit(self, "tuned_on", f"; expected one of {choices}")
        if self.tuned_on and len(self.of) > MOST_TUNED:
            raise unfit(self, "of", f"; expected up to {MOST_TUNED} systems with tuned_on")

    def check_mined(self, config: Config, collection: str, split: str) -> None:
        """Refuse a fusion with a system that does not search."""
        for index, part in enumerate(self.of):
            entry = config.systems[part]
            if not entry.searches:
                words = (
                    f" is {part}, of kind {entry.kind}; expected in a fusion that gives "
                    "negatives: a system that searches"
                )
                raise refusal(("of", index), words)

    def files(self, config: Config, name: str, made: Made) -> Columns:
        """Return the weights that the job of the fusion chose."""
        about = json.loads(Path(made("fusion")).read_text(encoding="utf-8"))
        if about["systems"] != list(self.of):
            raise InputError(f"{name} was fused from other systems; use ./run to update it")
        return {"weights": about["weights"]}
