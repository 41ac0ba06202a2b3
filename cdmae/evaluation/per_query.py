"""Reading and writing per-query measures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from cdmae.files import complete

MEASURES = ["collection", "split", "query_id", "measure", "value"]


def write_measures(path: Path | str, measures: pd.DataFrame) -> None:
    """Write per-query measures (the columns of `MEASURES`) as a tab-separated file."""
    with complete(path) as aside:
        measures[MEASURES].to_csv(aside, sep="\t", index=False, float_format="%.6f")


def read_measures(path: Path | str) -> pd.DataFrame:
    """Read per-query measures; names and ids remain text even if they look like numbers."""
    types = {**dict.fromkeys(MEASURES, str), "value": float}
    # An id may contain a carriage return, which pandas would treat as the end of a line.
    how = {"keep_default_na": False, "lineterminator": "\n"}
    return pd.read_csv(path, sep="\t", usecols=MEASURES, dtype=types, **how)
