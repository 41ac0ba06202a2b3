"""Settings of the importance of words."""

from __future__ import annotations

from typing import Any, Literal

from cdmae.fields import asdict, pick, setting, settings


@settings
class Importance:
    """How the importance of words is estimated: equations 7 and 8."""

    unit: Literal["word", "wordpiece"] = setting(
        "word", meaning="the unit of n-grams", source="decision 3"
    )
    window: int = setting(
        4, unit="words", meaning="longest n-gram, L in equation 8", source="3.2", low=2, high=8
    )
    pmi: Literal["min", "product"] = setting(
        "min",
        source="decision 1, PMI-Masking eq. 3",
        meaning="PMI of more than two words: minimum over their segmentations, or product of "
        "single words",
    )
    normaliser: Literal["order", "pooled"] = setting(
        "order",
        source="decision 2",
        meaning="the divisor of a count: all n-grams of its order, or of all orders",
    )
    edges: Literal["literal", "mean"] = setting(
        "literal",
        source="decision 6",
        meaning="at the ends of a passage: equation 8 literally (a missing n-gram counts as 0), "
        "or the mean over existing n-grams",
    )

    def values(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return asdict(self)

    def counting(self) -> dict[str, Any]:
        """Return the settings that affect the n-gram counts."""
        return pick(asdict(self), ("unit", "window"))
