"""Read published numbers, each with its source: from the paper, and later ones on its data.

Values are points: measures times 100.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cdmae.errors import InputError
from cdmae.report.facts import GRADED, Facts, Target

FILE = Path(__file__).resolve().parents[3] / "config" / "paper_results.csv"
COLUMNS = ["table", "row", "stage", "dataset", "measure", "value", "source", "kind"]
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
    return _read(FILE)[table]


@cache
def tables() -> list[str]:
    """List the names of all published tables."""
    return list(_read(FILE))


@cache
def _read(path: Path) -> dict[str, dict[str, Row]]:
    """Read all tables; raises `InputError` for a damaged file."""
    remedy = f"git restore {path.name} in {path.parent}"
    try:
        numbers = pd.read_csv(path, dtype=str, keep_default_na=False, skip_blank_lines=False)
    except (OSError, ValueError) as error:  # of pandas' parser, which names the line
        raise InputError(f"{path} cannot be read ({str(error).strip()}); {remedy}") from None
    if numbers.columns.tolist() != COLUMNS:
        raise InputError(
            f"{path}, line 1 is {','.join(numbers)}; expected {','.join(COLUMNS)}; {remedy}"
        )
    values = pd.to_numeric(numbers["value"], errors="coerce")
    wrong = ~values.between(0, 100) | ~numbers["stage"].isin(list("0123"))
    wrong |= (numbers[COLUMNS[:-1]] == "").any(axis=1) | numbers.duplicated(COLUMNS[:5])
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"{path}, line {at + 2} is {','.join(numbers.iloc[at])}; expected no empty cell "
            f"but the last, a stage from 0 to 3, a value from 0 to 100, each number once; {remedy}"
        )
    found: dict[str, dict[str, Row]] = {}
    for (table, name, stage, *key, _, source, kind), value in zip(
        numbers.to_numpy(), values, strict=True
    ):
        label = name if stage == "0" else f"{name}, stage {stage}"
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
