"""Reading and writing per-query measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.errors import InputError
from cdmae.files import complete, read_table, remedy

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ["collection", "split", "query_id", "measure", "value"]


def write_measures(path: Path | str, measures: pd.DataFrame) -> None:
    """Write per-query measures (the columns of `MEASURES`) as a tab-separated file."""
    with complete(path) as aside:
        measures[MEASURES].to_csv(aside, sep="\t", index=False, float_format="%.6f")


def read_measures(path: Path | str) -> pd.DataFrame:
    """Read per-query measures; names and ids remain text even if they look like numbers."""
    types = {**dict.fromkeys(MEASURES, str), "value": float}
    # An id may contain a carriage return, which pandas would treat as the end of a line.
    options = {"usecols": MEASURES, "keep_default_na": False, "lineterminator": "\n"}
    frame = read_table(path, dtype=types, **options)
    if frame.isna().any(axis=None):
        raise InputError(f"{path} is damaged (a row is incomplete); {remedy(path)}")
    return frame
