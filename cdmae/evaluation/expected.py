"""The numbers in the README, and their comparison with the numbers of a finished run.

``config/expected.csv`` is the only source of these numbers: a test compares the README's tables
with it, and ``./run check`` compares a run's ``report/results.csv`` with it. A row is a number: the
mean of a system over queries and seeds, times 100, or its lead over another system (`minus`). Its
noise is the difference that a repetition with other seeds exceeds in 5 of 100 cases, and at least
the rounding error. One seed measures no noise: a system that a run with several seeds trains once
has the largest noise of its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from cdmae.errors import InputError
from cdmae.files import complete

COLUMNS = [
    "table", "configfile", "seeds", "label", "system", "minus", "column", "collection", "split",
    "measure", "value", "noise",
]  # fmt: skip
DIGITS = 1  # after the decimal point, as in the README
LEAST = 0.1  # points: a rounding error
TWO_RUNS = 1.96 * math.sqrt(2)  # times a standard deviation: the distance of two runs, 95 %


def read(path: Path) -> pd.DataFrame:
    """Read the numbers; raise `InputError` if the file has another form."""
    types = {**dict.fromkeys(COLUMNS, str), "value": float, "noise": float}
    try:
        frame = pd.read_csv(path, dtype=types, keep_default_na=False)
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}); restore the file") from None
    if frame.columns.tolist() != COLUMNS:
        raise InputError(f"{path} has the columns {', '.join(frame)}; restore the file")
    return frame


def write(path: Path, numbers: pd.DataFrame) -> None:
    """Write the numbers."""
    with complete(path) as aside:
        numbers.to_csv(aside, index=False, float_format=f"%.{DIGITS}f")


def made_by(numbers: pd.DataFrame, configfile: Sequence[str], seeds: Sequence[int]) -> pd.Series:
    """Return which numbers a run with these config files and seeds produces."""
    own = numbers["configfile"] == " ".join(configfile)
    return own & (numbers["seeds"] == " ".join(map(str, seeds)))


def measured(
    numbers: pd.DataFrame, results: pd.DataFrame, learns: Callable[[str], bool]
) -> pd.DataFrame:
    """Replace values and noise by a run's; results: its ``results.csv``.

    learns: whether a seed changes a system. Raises `InputError` for a number that the run lacks.
    """
    key = ["system", "collection", "split", "measure"]
    means = results.groupby(key, sort=False)["value"].agg(list).to_dict()

    def seeds_of(row: pd.Series, system: str) -> list[float]:
        found = means.get((system, row["collection"], row["split"], row["measure"]))
        if found is None:
            raise InputError(
                f"the run has no {row['measure']} of {system} on {row['collection']} "
                f"{row['split']}; add it to the config and run again"
            )
        return [100 * mean for mean in found]

    found = numbers.copy()
    once = []
    for at, row in numbers.iterrows():
        values = pd.Series(seeds_of(row, row["system"]))
        if row["minus"]:
            others = seeds_of(row, row["minus"])
            values = values.iloc[: len(others)] - pd.Series(others[: len(values)])
        once.append(len(values) == 1 and learns(row["system"]))
        spread = values.std() if len(values) > 1 else 0.0
        found.loc[at, "value"] = round(float(values.mean()), DIGITS)
        noise = max(LEAST, TWO_RUNS * float(spread) / math.sqrt(len(values)))
        found.loc[at, "noise"] = round(noise, DIGITS)
    largest = found.groupby(["table", "column"])["noise"].transform("max")
    found["noise"] = found["noise"].mask(pd.Series(once, found.index, dtype=bool), largest)
    return found


def verdicts(expected: pd.DataFrame, found: pd.DataFrame) -> pd.Series:
    """Compare numbers: OK if equal as shown, OKish within the noise, otherwise FAIL."""
    apart = (found["value"] - expected["value"]).abs().round(DIGITS)
    words = pd.Series("FAIL", expected.index)
    words[apart <= expected["noise"]] = "OKish"
    words[apart == 0] = "OK"
    return words


def markdown(numbers: pd.DataFrame) -> str:
    """Format a table's rows as Markdown for the README."""
    cells = []
    for value, minus in zip(numbers["value"], numbers["minus"], strict=True):
        cells.append(f"{value:{'+' if minus else ''}.{DIGITS}f}")
    wide = numbers.assign(cell=cells).pivot(index="label", columns="column", values="cell")
    wide = wide.loc[numbers["label"].unique(), numbers["column"].unique()]
    return wide.to_markdown(disable_numparse=True)
