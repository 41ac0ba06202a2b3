"""A fusion: the reciprocal ranks or the scores of several systems, weighted and summed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cdmae.config import systems
from cdmae.config.kinds._system import Columns, Made, Part, System
from cdmae.errors import InputError
from cdmae.fields import refusal, setting, settings, show, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config

MOST_TUNED = 4  # the most systems whose weights are tuned


@settings
class Fusion(System):
    """A weighted sum of the reciprocal ranks or scores of several systems."""

    weighs = True
    neural = False
    answered_by = "fusion"

    kind: Literal["fusion"] = setting(
        "fusion", meaning="the ranks or scores of several systems, summed"
    )
    of: tuple[str, ...] = setting(meaning="at least two systems", names="systems")
    method: Literal["reciprocal_rank", "convex"] = setting(
        "reciprocal_rank",
        meaning="the summands: 1 / (k + rank), or scores scaled to 0 .. 1 within each ranking",
        source="Cormack et al. 2009; convex: Bruch et al. 2023",
    )
    k: float = setting(
        60.0, meaning="constant in 1 / (k + rank)", source="Cormack et al. 2009", above=0, high=1e6
    )
    weights: tuple[Annotated[float, Field(strict=True, ge=0, le=1e6)], ...] = setting(
        (),
        meaning="weight of each system; empty: equal weights, or the weights that `tuned_on` "
        "chooses",
    )
    tuned_on: tuple[str, ...] = setting(
        (),
        meaning="collection and split, as in [pydocs, dev], whose judgments choose the weights by "
        "the first of the evaluation's measures",
    )

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
            "tuned_run": f"{collection}.{split}",
            "tuned_collection": collection,
            "tuned": [split, measure],
        }

    def check(self, config: Config, name: str) -> None:
        """Refuse too few systems, and weights that do not match the systems."""
        if len(set(self.of)) < max(2, len(self.of)):
            raise unfit(self, "of", "; allowed: at least two systems, each once")
        if self.weights and (len(self.weights) != len(self.of) or not any(self.weights)):
            raise unfit(
                self, "weights", f"; allowed: one for each of the {len(self.of)} systems, not all 0"
            )
        if self.weights and self.tuned_on:
            raise unfit(self, "weights", ", but tuned_on chooses them; remove one of the two")
        targets = systems.targets(config)
        if self.tuned_on and self.tuned_on not in targets:
            choices = ", ".join(show(list(target)) for target in targets)
            offer = f"allowed: one of {choices}" if targets else "there is nothing to choose from"
            raise unfit(self, "tuned_on", f"; {offer}")
        if self.tuned_on and len(self.of) > MOST_TUNED:
            raise unfit(
                self,
                "tuned_on",
                f"; allowed with up to {MOST_TUNED} systems, but `of` has {len(self.of)}",
            )

    def check_mined(self, config: Config, collection: str, split: str) -> None:
        """Refuse a fusion with a system that does not search."""
        for index, part in enumerate(self.of):
            entry = config.systems[part]
            if not entry.searches:
                words = (
                    f" is {part}, of kind {entry.kind}; allowed in a fusion that gives "
                    "negatives: systems that search"
                )
                raise refusal(("of", index), words)

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Add the weights that the job of the fusion chose.

        Raises `InputError` if that job used other settings.
        """
        about = json.loads(Path(made("fusion")).read_text(encoding="utf-8"))
        now = {"method": self.method, "k": self.k, "systems": list(self.of)}
        weights = list(self.weights) or [1.0] * len(self.of)
        now |= {"on": list(self.tuned_on)} if self.tuned_on else {"weights": weights}
        if not now.items() <= about.items():
            raise InputError(
                f"{name} was fused with settings other than the config's; use ./run to update it"
            )
        return super().asked(config, name, made, part) | {"weights": about["weights"]}

    def in_words(self) -> str:
        """Name its systems and its summands."""
        summands = "scores" if self.method == "convex" else "reciprocal ranks"
        chosen = f", weights chosen on {' '.join(self.tuned_on)}" if self.tuned_on else ""
        return f"{summands} of {', '.join(self.of)}, summed{chosen}"
