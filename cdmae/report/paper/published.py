"""Read published numbers, each with its source: from the paper, and later ones on its data.

`dataset` and `nano` map a target to the name of its published dataset. Values are points: measures
times 100.
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
OURS = "CDMAE"  # the paper's own method
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

    name: str
    source: str
    values: dict[Key, float]
    kind: str = ""


MAIN = Key(DEV, "RR@10")  # the number that nearly every row has
AVERAGE = Key("average", GRADED)  # of the datasets of table 3, or of NanoBEIR
METHODS = pd.read_csv(
    Path(__file__).with_name("methods.csv"), index_col="method", dtype=str, keep_default_na=False
)


def _methods(column: str) -> dict[str, str]:
    """Return a column's non-empty cells in the table of methods, by method."""
    return {str(method): value for method, value in METHODS[column].items() if value}


# the methods whose pre-training is a file in cdmae/pretraining/objectives
OBJECTIVES = _methods("objective")
# the decoder's masking; methods that are not listed mask uniformly, if they have a decoder
MASKINGS = _methods("masking")
# the last fine-tuning stage in table 1: with hard negatives, or with distillation
STAGE_OF = {method: int(stage) for method, stage in _methods("stages").items()}
# published checkpoints that result from a method: pre-trained on MS MARCO, as in tables 1 and 2, or
# on general text only, as in table 3; the authors of RetroMAE report both
IN_DOMAIN = {"Shitao/RetroMAE_MSMARCO": "RetroMAE"}
GENERAL = {"Shitao/RetroMAE": "RetroMAE"}


def rows(table: str) -> dict[tuple[str, int], Row]:
    """Return a table's rows from the paper by name and fine-tuning stage, 0 without stages."""
    return _read(FILE)[table]


@cache
def _read(path: Path) -> dict[str, dict[tuple[str, int], Row]]:
    """Read all tables; raises `InputError` for a damaged file."""
    remedy = f"git restore {path.name} in {path.parent}"
    try:
        numbers = pd.read_csv(path, dtype=str, keep_default_na=False, skip_blank_lines=False)
    except (OSError, ValueError) as error:  # of pandas' parser, which names the line
        raise InputError(f"{path} cannot be read ({str(error).strip()}); {remedy}") from None
    if numbers.columns.tolist() != COLUMNS:
        raise InputError(
            f"{path}, line 1 is {','.join(numbers)}; allowed: {','.join(COLUMNS)}; {remedy}"
        )
    values = pd.to_numeric(numbers["value"], errors="coerce")
    wrong = (
        ~values.between(0, 100)
        | ~numbers["stage"].isin(list("0123"))
        | (numbers[COLUMNS[:-1]] == "").any(axis=1)
    )
    wrong |= numbers.duplicated(COLUMNS[:5])
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"{path}, line {at + 2} is {','.join(numbers.iloc[at])}; allowed: no empty cell "
            f"but the last, a stage from 0 to 3, a value from 0 to 100, each number once; {remedy}"
        )
    tables: dict[str, dict[tuple[str, int], Row]] = {}
    for (table, name, stage, *key, _, source, kind), value in zip(
        numbers.to_numpy(), values, strict=True
    ):
        row = Row(name, f"{table}; {source}", {}, kind)
        tables.setdefault(table, {}).setdefault((name, int(stage)), row).values[Key(*key)] = value
    return tables


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
