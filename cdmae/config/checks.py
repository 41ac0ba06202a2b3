"""Check single values of a config: names, the results folder, measures, and cyclic references."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from cdmae.errors import InputError
from cdmae.fields import refusal, show

if TYPE_CHECKING:
    from ir_measures import Measure

SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")  # MS MARCO has a split dev.small
# Providers of ir_measures with pinned packages, so that the same package computes a measure
# everywhere. The provider of Accuracy is omitted: it divides by zero if every passage that a query
# found is relevant.
PROVIDERS = ("pytrec_eval", "msmarco", "judged", "compat")


def check_results(results: str) -> None:
    """Refuse a results folder with a path that the workflow cannot use."""
    if not re.fullmatch(r"[^\s*?\[\]{}<>:~-][^\s*?\[\]{}<>:]*", os.path.normpath(results)):
        words = "; expected a path without spaces, wildcards and colons, not from - or ~"
        raise refusal(("results",), f" is {show(results)}{words}")


def check_lengths(lengths: Mapping[str, int], positions: int | None, owner: str) -> None:
    """Refuse lengths that exceed a model's maximum input.

    lengths: the lengths in tokens, by key of the config. positions: the maximum in tokens; None if
    only the job that loads the model knows it, which then checks again. owner: a description of the
    maximum for messages.
    """
    for key, length in lengths.items():
        if positions is not None and length > positions:
            raise refusal((key,), f" is {length}; expected up to {positions}, {owner}")


def check_step(step: int, last: int, owner: str) -> None:
    """Refuse a `take_step` after a training's last step.

    owner: a description of the last step for messages.
    """
    if step > last:
        raise refusal(("take_step",), f" is {step}; expected up to {last}, {owner}")


def in_order(section: str, needs: dict[str, list[str]]) -> list[str]:
    """List the entries of a section, each after the entries that it `needs`; refuse a cycle."""
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        circle = error.args[1][::-1]
        words = f"{section} depend on each other in a circle: {' -> '.join(circle)}"
        raise InputError(f"{words}; remove a reference", keys=(section, circle[0])) from None


def read_measure(name: str) -> Measure:
    """Parse a measure; refuse one that ir_measures cannot compute as a mean over queries."""
    import ir_measures  # 45 ms that few jobs need to pay

    keys = ("evaluation", "measures")
    providers = [ir_measures.providers.registry[provider] for provider in PROVIDERS]
    try:
        measure = ir_measures.parse_measure(name)
        is_mean = isinstance(measure.aggregator(), ir_measures.MeanAgg)  # counts are summed
        fits = is_mean and any(provider.supports(measure) for provider in providers)
    except Exception:  # ir_measures raises any of Python's errors
        fits = False
    if not fits:
        words = f"expected means that {', '.join(PROVIDERS)} of ir_measures compute"
        raise refusal(keys, f" has {show(name)}; {words}, such as nDCG@10 or R(rel=2)@1000")
    # (rel=1) has an effect where evaluation.relevant sets another grade
    if str(measure) != name.replace("(rel=1)", ""):
        raise refusal(keys, f" has {show(name)}; expected {measure}, the notation of ir_measures")
    return measure
