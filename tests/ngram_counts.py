"""N-gram counts of small collections, in memory."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from cdmae.importance import ngrams
from cdmae.importance import table as ngram_table
from cdmae.tokens.corpus import Tokens


class Counts(NamedTuple):
    """What `count_to` writes; the files stay mapped after they are deleted."""

    counts: np.ndarray
    segments: np.ndarray
    totals: np.ndarray
    table: ngram_table.Table


def read_counts(folder: Path | str) -> Counts:
    counts, segments = (np.load(Path(folder, f"{name}.npy")) for name in ("counts", "segments"))
    table = ngram_table.read(folder)
    return Counts(counts, segments, table.totals, table)


def count(tokens: Tokens, **how) -> Counts:
    with TemporaryDirectory() as folder:
        ngrams.count_to(Path(folder, "ngrams"), tokens, **how)
        return read_counts(Path(folder, "ngrams"))
