"""Settings of the importance of words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from cdmae.fields import Entry, Whole, asdict, pick, settings


@settings
class Importance(Entry):
    """How the importance of words is estimated: equations 7 and 8."""

    unit: Literal["word", "wordpiece"] = "word"
    """Unit of n-grams [decision 3]."""
    window: Annotated[Whole, Ge(2), Le(8)] = 4
    """Longest n-gram, L in equation 8 (words) [3.2]."""
    pmi: Literal["min", "product"] = "min"
    """PMI of longer n-grams: the least of all segmentations, or by single words [decision 1]."""
    normaliser: Literal["order", "pooled"] = "order"
    """Divisor of a count: all n-grams of its order, or of all orders [decision 2]."""
    edges: Literal["literal", "mean"] = "literal"
    """Passage ends: equation 8 literally, or the mean of the n-grams that exist [decision 6]."""

    def counting(self) -> dict[str, Any]:
        """Return the settings that affect the n-gram counts."""
        return pick(asdict(self), ("unit", "window"))

    def formula(self) -> dict[str, Any]:
        """Return the settings that affect only how the counts are read."""
        return pick(asdict(self), ("pmi", "normaliser", "edges"))
