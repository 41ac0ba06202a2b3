"""Check single values of a config: names, the results folder, measures, and cyclic references."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.errors import InputError
from cdmae.fields import Keys, refusal, show

if TYPE_CHECKING:
    from ir_measures import Measure

# a file name may join three names, and file systems allow 255 bytes
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
SPLIT = re.compile(r"\w[\w.-]*")  # MS MARCO has a split dev.small
MOST_SPLIT = 64  # bytes
SKEW = 60  # seconds by which a file server's clock may be ahead
ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    ".ci",
    ".git",
    ".snakemake",
    ".venv",
    "benchmarks",
    "cdmae",
    "config",
    "docs",
    "envs",
    "tests",
    "workflow",
)
# Providers of ir_measures with pinned packages, so that the same package computes a measure
# everywhere. The provider of Accuracy is omitted: it divides by zero if every passage that a query
# found is relevant.
PROVIDERS = ("pytrec_eval", "msmarco", "judged", "compat")


def check_name(name: str, section: str) -> None:
    """Refuse a name that cannot be part of a path."""
    if not NAME.fullmatch(name):
        words = f"{section} has the name {show(name)}; expected up to 64 letters, digits, - and _"
        raise InputError(words, keys=(section, name))


def check_results(results: str) -> None:
    """Refuse a results folder that contains code, or has a path that the workflow cannot use."""

    def refused(words: str) -> InputError:
        return refusal(("results",), f" is {show(results)}{words}")

    if os.path.normpath(results).startswith(("-", "~")):
        raise refused("; expected a folder whose path does not begin with - or ~")
    if not results.isprintable() or re.search(r"^$|[\s*?\[\]{}<>]|^[^/]*:", results):
        raise refused("; expected a folder without spaces, wildcards, < and >, and no address")
    folder = Path(results).resolve()
    if ROOT.is_relative_to(folder):
        raise refused(", which contains the checkout; expected a folder of its own")
    if any(len(os.fsencode(part)) > 200 for part in folder.parts):
        raise refused("; expected names of up to 200 bytes")
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir():
        raise refused(f", but {nearest} is a file; expected a folder")
    for source in SOURCES:
        if folder.is_relative_to((ROOT / source).resolve()):
            raise refused(
                f", inside the folder {source} of the checkout; expected a folder of its own"
            )


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


def check_time(file: Path | str, keys: Keys) -> None:
    """Refuse a file with a modification time in the future.

    Snakemake would consider all results made from this file outdated, and delete them.
    """
    if os.stat(file).st_mtime > time.time() + SKEW:
        raise refusal(
            keys,
            f": the modification time of {file} is in the future, so results that are made from it "
            "would seem outdated; `touch` it",
        )


def fits_in_paths(split: str) -> bool:
    """Return whether a split's name can be part of a path, together with other names."""
    return SPLIT.fullmatch(split) is not None and len(os.fsencode(split)) <= MOST_SPLIT


def check_cycles(section: str, needs: dict[str, list[str]]) -> None:
    """Refuse entries of a section that depend on each other in a cycle.

    needs: the entries that each entry depends on.
    """
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]  # the list ends with the name with which it begins
        begin = circle.index(next(name for name in needs if name in circle))
        names = [*circle[begin:], *circle[: begin + 1]]
        words = (
            f"{section} depend on each other in a circle: {' -> '.join(names)}; remove a reference"
        )
        raise InputError(words, keys=(section, names[0])) from None


def read_measure(name: str, *, of: tuple[str, ...] = ("evaluation", "measures")) -> Measure:
    """Parse a measure; refuse one that ir_measures cannot compute as a mean over queries.

    of: the keys of the config, or the command-line option, that contain the measure.
    """
    import ir_measures  # 45 ms that few jobs need to pay

    try:
        measure = ir_measures.parse_measure(name)
        written = str(measure)
        known = any(
            ir_measures.providers.registry[provider].supports(measure) for provider in PROVIDERS
        )
        numbers = [measure.params.get(key, 1) for key in ("cutoff", "rel")]
        gains = [number for pair in measure.params.get("gains", {}).items() for number in pair]
        whole = (
            all(type(number) is int for number in numbers + gains)
            and 1 <= min(numbers) <= max(numbers) <= 100_000
        )
        # counts are summed
        usable = known and whole and isinstance(measure.aggregator(), ir_measures.MeanAgg)
    except Exception:  # its parser raises any of Python's errors
        usable = False
    if not usable:
        raise refusal(
            of,
            f" has {show(name)}; expected means that {', '.join(PROVIDERS[:-1])} and "
            f"{PROVIDERS[-1]} of ir_measures compute, such as nDCG@10, R(rel=2)@1000 or Judged@10",
        )
    # (rel=1) has an effect where evaluation.relevant sets another grade
    if written != name.replace("(rel=1)", ""):
        raise refusal(of, f" has {show(name)}; expected {written}, the notation of ir_measures")
    return measure
