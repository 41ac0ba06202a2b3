"""The numbers in the README, and their comparison with the numbers of a finished run.

``config/expected.yaml`` is the only source of these numbers: a test compares the README's tables
with it, and ``./run check`` compares a run with it. A row is a system's mean over queries and
seeds, times 100, or the difference of two systems. The noise of a row is the difference that a
repetition with other seeds exceeds in 5 of 100 cases, and at least the rounding error. A run with
one seed measures no noise. For a system that a run with several seeds trains once, it is the
largest noise in its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from cdmae.errors import InputError
from cdmae.files import write_text

HEAD = """\
# The numbers of the README's tables, each with the noise of its seeds. `./run check` compares a
# finished run with them. `./run check --write` replaces the numbers of the tables that its config
# and seeds make, and prints their rows in Markdown.
"""
DIGITS = 1  # after the decimal point, as in the README
LEAST = 0.1  # points: a rounding error
TWO_RUNS = 1.96 * math.sqrt(2)  # times a standard deviation: the distance of two runs, 95 %

# returns the per-query values of a system and its replicas, one per seed, on a split
Read = Callable[[str, str, str], list[np.ndarray]]


@dataclass(frozen=True)
class Row:
    """A row of a table: one number per column for `system`, or for its lead over another system."""

    label: str
    system: str
    minus: str = ""
    values: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of the README.

    configfile, seeds: the run that makes it. columns: the collection and the split of each column,
    by its heading.
    """

    title: str
    measure: str
    columns: Mapping[str, tuple[str, str]]
    rows: Sequence[Row]
    configfile: Sequence[str] = ()
    seeds: Sequence[int] = (42,)


@dataclass(frozen=True)
class Verdict:
    """The comparison of one number in the README with the run's number."""

    row: str
    column: str
    expected: float
    found: float
    noise: float
    word: str = field(init=False)

    def __post_init__(self) -> None:
        """Choose the verdict: OK if equal as shown, OKish within the noise, otherwise FAIL."""
        word = "FAIL"
        if round(self.found, DIGITS) == round(self.expected, DIGITS):
            word = "OK"
        elif abs(self.found - self.expected) <= self.noise:
            word = "OKish"
        object.__setattr__(self, "word", word)

    def __str__(self) -> str:
        """Format the verdict as a line for the terminal."""
        difference = self.found - self.expected
        return (
            f"{f'[{self.word}]':8}{self.row}, {self.column}: {self.found:.1f}, expected "
            f"{self.expected:.1f} ({difference:+.1f}, noise {self.noise:.1f})"
        )


def read(path: Path) -> list[Table]:
    """Read the tables; raise `InputError` if the file has another form."""
    try:
        return [_table(values) for values in yaml.safe_load(path.read_text(encoding="utf-8"))]
    except (yaml.YAMLError, TypeError, KeyError, ValueError) as error:
        words = " ".join(str(error).split())
        raise InputError(
            f"{path} is not a list of tables in cdmae's form ({words}); restore the file"
        ) from None


def _table(values: dict[str, Any]) -> Table:
    rows = []
    columns = {name: tuple(on) for name, on in values["columns"].items()}
    for row in values["rows"]:
        numbers = {key: tuple(map(float, row.get(key, ()))) for key in ("values", "noise")}
        if any(len(each) not in (0, len(columns)) for each in numbers.values()):
            raise ValueError(f"the row {row['label']} does not have one number per column")
        rows.append(Row(**{**row, **numbers}))
    return Table(**{**values, "columns": columns, "rows": rows})


def write(path: Path, tables: Sequence[Table]) -> None:
    """Write the tables."""
    plain = []
    for table in tables:
        rows = []
        for row in table.rows:
            kept = {key: value for key, value in asdict(row).items() if value not in ("", ())}
            rows.append({key: _plain(value) for key, value in kept.items()})
        columns = {name: list(on) for name, on in table.columns.items()}
        values = {"configfile": list(table.configfile), "seeds": list(table.seeds)}
        head = {"title": table.title, "measure": table.measure}
        plain.append({**head, **values, "columns": columns, "rows": rows})
    text = yaml.safe_dump(
        plain, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    write_text(path, HEAD + text)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def made_by(tables: Sequence[Table], configfile: Sequence[str], seeds: Sequence[int]) -> list[int]:
    """List the indices of the tables that a run with these config files and seeds produces."""
    return [
        index
        for index, table in enumerate(tables)
        if list(table.configfile) == list(configfile) and list(table.seeds) == list(seeds)
    ]


def measured(table: Table, read_values: Read, learns: Callable[[str], bool]) -> Table:
    """Fill a table with a run's numbers; learns: whether a seed changes a system."""
    rows = []
    once = set()
    for row in table.rows:
        values = []
        noise = []
        for collection, split in table.columns.values():
            runs = read_values(row.system, collection, split)
            means = np.array([100 * run.mean() for run in runs])
            if row.minus:
                others = read_values(row.minus, collection, split)
                means = means - np.array([100 * run.mean() for run in others])
            if len(means) == 1:
                once.add(row.system)
            values.append(round(float(means.mean()), DIGITS))
            spread = means.std(ddof=1) if len(means) > 1 else 0.0
            of_seeds = TWO_RUNS * spread / math.sqrt(len(means))
            noise.append(round(float(max(LEAST, of_seeds)), DIGITS))
        rows.append(replace(row, values=tuple(values), noise=tuple(noise)))
    largest = tuple(map(max, zip(*(row.noise for row in rows), strict=True)))
    return replace(
        table,
        rows=[
            replace(row, noise=largest) if row.system in once and learns(row.system) else row
            for row in rows
        ],
    )


def compare(expected: Table, found: Table) -> list[Verdict]:
    """Compare every number of a table with a run's."""
    verdicts = []
    for row, own in zip(expected.rows, found.rows, strict=True):
        noises = row.noise or (LEAST,) * len(row.values)
        cells = zip(expected.columns, row.values, own.values, noises, strict=True)
        for column, value, measured_value, noise in cells:
            verdicts.append(Verdict(row.label, column, value, measured_value, noise))
    return verdicts


def markdown(table: Table) -> str:
    """Format the table's rows as Markdown for the README."""
    lines = []
    for row in table.rows:
        sign = "+" if row.minus else ""
        cells = [f"{value:{sign}.{DIGITS}f}" for value in row.values]
        lines.append(f"| {' | '.join([row.label, *cells])} |")
    return "\n".join(lines)


def of_system(
    frames: Sequence[pd.DataFrame], measure: str, collection: str, split: str
) -> list[np.ndarray]:
    """List one system's values of a measure on a split, one series per frame of `read_measures`."""
    found = []
    for frame in frames:
        rows = frame[
            (frame["collection"] == collection)
            & (frame["split"] == split)
            & (frame["measure"] == measure)
        ]
        if rows.empty:
            raise InputError(
                f"the run has no {measure} on {collection} {split}; add it to evaluation in the "
                "config and run again"
            )
        found.append(rows["value"].to_numpy())
    return found
