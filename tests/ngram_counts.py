"""N-gram counts of small collections, in memory."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from cdmae.importance import ngrams
from cdmae.tokens.corpus import Tokens


class Counts(NamedTuple):
    """What `count_to` writes."""

    counts: np.ndarray
    segments: np.ndarray
    totals: np.ndarray


def read_counts(folder: Path | str) -> Counts:
    return Counts(*(np.load(Path(folder, f"{name}.npy")) for name in Counts._fields))


def count(tokens: Tokens, **how) -> Counts:
    with TemporaryDirectory() as folder:
        ngrams.count_to(Path(folder, "ngrams"), tokens, **how)
        return read_counts(Path(folder, "ngrams"))
