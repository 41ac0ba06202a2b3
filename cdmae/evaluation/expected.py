"""The numbers in the README, and their comparison with the numbers of a finished run.

``config/expected.csv`` is the only source of these numbers. A row is a number: the mean of a system
over queries and seeds, times 100, or its lead over another system (`minus`). Its noise is the
difference that a repetition with other seeds exceeds in 5 of 100 cases, and at least the rounding
error. One seed measures no noise: a system that a run with several seeds trains once has the
largest noise that one training has in its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from cdmae.errors import InputError

KEY = ["collection", "split", "measure"]
DIGITS = 1  # after the decimal point, as in the README
LEAST = 0.1  # points: a rounding error


def read(path: Path) -> pd.DataFrame:
    """Read the numbers; names remain text even if they look like numbers."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return frame.astype({"value": float, "noise": float})


def measured(
    numbers: pd.DataFrame, results: pd.DataFrame, learns: Callable[[str], bool]
) -> pd.DataFrame:
    """Replace values and noise by a run's; results: its ``results.csv``.

    learns: whether a seed changes a system. Raises `InputError` for a number that the run lacks.
    """
    points = 100 * results.groupby(["system", *KEY])["value"].agg(np.array)
    found = numbers.copy()
    alone = pd.Series(math.nan, found.index)  # the noise of one training
    for at, row in numbers.iterrows():
        try:
            values = pd.Series(points[row["system"], *row[KEY]])
            if row["minus"]:
                values = values.sub(pd.Series(points[row["minus"], *row[KEY]])).dropna()
        except KeyError as missing:
            name, collection, split, measure = missing.args[0]
            raise InputError(
                f"the run has no {measure} of {name} on {collection} {split}; add it to the "
                "config and run again"
            ) from None
        noise = LEAST
        if len(values) > 1:
            # Student's t: the deviation is estimated from few seeds; two runs differ by both noises
            half = stats.t.ppf(0.975, len(values) - 1) * math.sqrt(2) * float(values.sem())
            noise = max(LEAST, half)
            alone[at] = noise * math.sqrt(len(values))
        elif learns(row["system"]):
            noise = math.nan
        found.loc[at, "value"] = round(float(values.mean()), DIGITS) + 0.0  # no -0.0
        found.loc[at, "noise"] = round(noise, DIGITS)
    largest = alone.groupby([found["table"], found["column"]]).transform("max")
    found["noise"] = found["noise"].fillna(largest.round(DIGITS)).fillna(LEAST)
    return found


def verdicts(expected: pd.DataFrame, found: pd.DataFrame) -> pd.Series:
    """Compare numbers: OK if equal as shown, OKish within the noise, otherwise FAIL."""
    apart = (found["value"] - expected["value"]).abs().round(DIGITS)
    words = pd.Series("FAIL", expected.index)
    words[apart <= expected["noise"]] = "OKish"
    words[apart == 0] = "OK"
    return words
