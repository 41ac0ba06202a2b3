"""Draw the words that masks cover, as in the paper's figure 2."""

from __future__ import annotations

from typing import Any

from cdmae import formats
from cdmae.report import figures
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.figures import Drawn

KINDS = (("uniform", "uniform", "s1"), ("importance", "by importance", "s0"))


def shown_masks(facts: Facts) -> str:
    """Choose the encoder for the examples of masks."""
    encoders = [facts.encoder_of(pair.system) for pair in masking_pairs(facts)]
    known = [name for name in [*encoders, *facts.masked_terms] if name in facts.masked_terms]
    return known[0]


def masked_figure(masked: dict[str, Any]) -> Drawn | None:
    """Draw the most frequently masked terms for each kind of mask, on one scale."""
    groups = []
    for kind, name, hue in KINDS:
        top = [(term, 100 * share) for term, share in masked[kind]["top"]]
        share = formats.plain_spaces(formats.percent(masked[kind]["stop_word_share"]))
        groups.append((f"{name}: {share} stop-words", top, hue))
    return figures.bars("The most frequently masked words", groups, "% of all masked words")
