"""Queries that are judged relevant to passages, as the second text of these passages.

In query-as-context pre-training (Wu et al. 2023), the context of a passage is a query for it, not
its neighbouring span. Any collection with judged queries has such pairs, also a collection of the
source `pseudo`, whose queries are made from its passages.

    P passages, A passages with queries, E pairs of a passage and a query
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.collections.store import read_qrels
from cdmae.config.encoders import ASKED_SPLIT
from cdmae.errors import InputError
from cdmae.models import sequences
from cdmae.models.ragged import starts_of
from cdmae.tokens.corpus import Tokens


@dataclass(frozen=True)
class Asked:
    """Passages with queries.

    tokens: the word-pieces of all passages, then of all queries. passages: int64 [A], ascending
    rows. queries: int64 [E], rows of `tokens`; those of passage a are ``queries[starts[a]:
    starts[a + 1]]``.
    """

    tokens: Tokens
    passages: np.ndarray
    queries: np.ndarray
    starts: np.ndarray

    def drawn(self, rows: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return one query of each of the passages `rows`, by a number in [0, 1): int64 [B]."""
        index = np.searchsorted(self.passages, rows)
        first = self.starts[index]
        count = self.starts[index + 1] - first
        return self.queries[first + np.floor(draws.astype(np.float64) * count).astype(np.int64)]


def read(folder: Path, passages: Tokens, tokenizer: Path) -> Asked:
    """Read the relevant queries of a collection's passages.

    folder: the collection. passages: its tokens. Raises `InputError` if no passage has a query.
    """
    qrels = read_qrels(folder, ASKED_SPLIT)
    relevant = qrels[(qrels["grade"] > 0) & (qrels["passage"] < len(passages))]
    if relevant.empty:
        raise InputError(
            f"{folder} has no passage with a relevant query of split {ASKED_SPLIT}; allowed with "
            "context query: a collection that has some"
        )
    pairs = relevant.sort_values(["passage", "query"])
    rows, counts = np.unique(pairs["passage"].to_numpy(np.int64), return_counts=True)
    queries = sequences.queries_of(folder, ASKED_SPLIT, tokenizer, 1)
    begin = passages.starts[-1]
    joined = Tokens(
        np.concatenate([passages.ids, queries.ids]),
        np.concatenate([passages.starts, begin + queries.starts[1:]]),
        np.concatenate([passages.text_starts, begin + queries.text_starts]),
        passages.word_starts,
    )
    return Asked(joined, rows, len(passages) + pairs["query"].to_numpy(np.int64), starts_of(counts))
