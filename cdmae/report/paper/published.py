"""Read published numbers, each with its source: from the paper, and later ones on its data.

Values are points: measures times 100.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cdmae.report.facts import GRADED, Facts, Target

FILE = Path(__file__).resolve().parents[3] / "config" / "paper_results.csv"
DEV = "msmarco dev"
DL19 = "msmarco dl19"
DL20 = "msmarco dl20"
DL = "msmarco dl19 and dl20"
NANO = "NanoBEIR"  # the table of published results on NanoBEIR
FURTHER = "further results"  # the table of results on MS MARCO that the paper does not have


class Key(NamedTuple):
    """A column of the paper: a dataset and a measure."""

    dataset: str
    measure: str


class Row(NamedTuple):
    """The numbers of a method or a setting in a published table.

    source: their origin. kind: in table 1, the meaning of its two columns of ticks.
    """

    source: str
    values: dict[Key, float]
    kind: str = ""


MAIN = Key(DEV, "RR@10")  # the number that nearly every row has
AVERAGE = Key("average", GRADED)  # of the datasets of table 3, or of NanoBEIR


def rows(table: str) -> dict[str, Row]:
    """Return a table's rows by their labels, such as ``CDMAE``, or ``CDMAE, stage 1``."""
    return _read()[table]


@cache
def tables() -> list[str]:
    """List the names of all published tables."""
    return list(_read())


@cache
def _read() -> dict[str, dict[str, Row]]:
    """Read all tables."""
    numbers = pd.read_csv(FILE, keep_default_na=False)
    found: dict[str, dict[str, Row]] = {}
    for table, name, stage, *key, value, source, kind in numbers.itertuples(index=False):
        label = f"{name}, stage {stage}" if stage else name
        row = Row(f"{table}; {source}", {}, kind)
        found.setdefault(table, {}).setdefault(label, row).values[Key(*key)] = value
    return found


def dataset(facts: Facts, target: Target) -> str:
    """Return a target's name in tables 1 and 2, such as ``msmarco dev``; "" if it has none."""
    entry = facts.entries("collections").get(target.collection, {})
    if entry.get("source") != "msmarco" and entry.get("dataset") != "msmarco-passage":
        return ""
    return {"dev": DEV, "dev/small": DEV, "dl19": DL19, "dl20": DL20}.get(target.split, "")


def nano(facts: Facts, target: Target) -> str:
    """Return a target's id in NanoBEIR, such as ``nano-beir/nq``; "" if it has none."""
    name = facts.entries("collections").get(target.collection, {}).get("dataset", "")
    return name if name.startswith("nano-beir/") else ""
