"""Read published numbers, each with its source: from the paper, and later ones on its data.

Values are points: measures times 100.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cdmae.config.schema import Config
from cdmae.report.facts import GRADED, Target

FILE = Path(__file__).resolve().parents[3] / "config" / "paper_results.csv"
DEV = "msmarco dev"
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
    kind: str
    values: dict[Key, float]


MAIN = Key(DEV, "RR@10")  # the number that nearly every row has
AVERAGE = Key("average", GRADED)  # of the datasets of table 3, or of NanoBEIR


@cache
def tables() -> dict[str, dict[str, Row]]:
    """Return the rows of every table by their labels: ``CDMAE``, or ``CDMAE, stage 1``."""
    numbers = pd.read_csv(FILE, keep_default_na=False)
    found: dict[str, dict[str, Row]] = {}
    for line in numbers.itertuples():
        label = f"{line.row}, stage {line.stage}" if line.stage else line.row
        row = Row(f"{line.table}; {line.source}", line.kind, {})
        row = found.setdefault(line.table, {}).setdefault(label, row)
        row.values[Key(line.dataset, line.measure)] = line.value
    return found


def dataset(config: Config, target: Target) -> str:
    """Return a target's name in the tables, such as ``msmarco dev``; "" if it has none.

    A set of NanoBEIR has the id of ir_datasets, such as ``nano-beir/nq``.
    """
    entry = config.collections[target.collection].of_source()
    name = entry.get("dataset", "")
    if entry["source"] == "msmarco" or name == "msmarco-passage":
        split = target.split.removesuffix("/small")
        return f"msmarco {split}" if split in ("dev", "dl19", "dl20") else ""
    return name if name.startswith("nano-beir/") else ""
