"""The table of prices, ``prices.csv``: what a unit of a rule's work costs.

rule     one or several, with spaces between them; ``*``: all that have no row of their own
unit     what is counted (`cdmae.plan.work`); a ``job`` counts once
seconds  of one core; those of a job pass until its process works, however many cores it has
disk     bytes that it leaves
memory   bytes of the process
device   bytes that lie on the GPUs, or in the memory of the process where there are none
source   where the price is from

Prices of the same rule and unit in several rows add up.
Networks are not in the table: they are priced by their operations (`cdmae.plan.flops`).
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("prices.csv")
PRICED = ("seconds", "disk", "memory", "device")
Units = dict[str, dict[str, float]]


def of(rule: str) -> Units:
    """Return the prices of a rule: unit to column to price."""
    table = _table()
    return table.get(rule, table["*"])


@cache
def _table() -> dict[str, Units]:
    table: dict[str, Units] = {}
    with open(TABLE, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for rule in row["rule"].split():
                unit = table.setdefault(rule, {}).setdefault(
                    row["unit"], dict.fromkeys(PRICED, 0.0)
                )
                for name in PRICED:
                    unit[name] += float(row[name] or 0)
    return table
