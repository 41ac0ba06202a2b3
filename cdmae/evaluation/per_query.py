"""Reading and writing tab-separated files: per-query measures, and records of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.errors import InputError
from cdmae.files import complete, remedy

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
    frame = read_table(path, dtype=types, keep_default_na=False, lineterminator="\n")
    if frame.columns.tolist() != MEASURES:
        raise InputError(
            f"{path} has the columns {frame.columns.tolist()} instead of {MEASURES}; delete the "
            "file and run again"
        )
    return frame


def read_table(path: Path | str, *, gaps: bool = True, **options: Any) -> pd.DataFrame:
    """Read a tab-separated file; raise `InputError` if it is empty or truncated.

    gaps: whether cells may be empty. options: arguments of `pandas.read_csv`.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path, sep="\t", **options)
    except ValueError as error:  # includes errors of pandas' parser
        raise InputError(f"{path} is damaged ({error}); {remedy(path)}") from None
    if not gaps and frame.isna().to_numpy().any():
        raise InputError(f"{path} is damaged (a row is incomplete); {remedy(path)}")
    return frame
