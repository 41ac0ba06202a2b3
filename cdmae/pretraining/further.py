"""Further texts of passages: queries that are judged relevant to them, or texts in files.

In query-as-context pre-training (Wu et al. 2023), the context of a passage is a query for it, not
its neighbouring span. Any collection with judged queries has such pairs. So has a collection of the
source `pseudo`, whose queries are made from its passages.

MASTER's further decoders restore texts that other models wrote for all passages (Zhou et al. 2022).

    P passages, A passages with queries, E pairs of a passage and a query or text
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cdmae.collections.store import read_passages, read_qrels
from cdmae.collections.tables import texts as read_texts
from cdmae.config.encoders import ASKED_SPLIT
from cdmae.errors import InputError
from cdmae.models import sequences
from cdmae.models.ragged import starts_of
from cdmae.terminal import printable
from cdmae.tokens.corpus import Tokens

if TYPE_CHECKING:
    import pandas as pd

    from cdmae.masking import Corpus


@dataclass(frozen=True)
class Asked:
    """Passages with queries, or with written texts, which are called queries here.

    tokens: the word-pieces of all passages, then of all further texts. passages: int64 [A],
    ascending rows. queries: int64 [E], rows of `tokens`; those of passage a are
    ``queries[starts[a]:starts[a + 1]]``.
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


def queries(corpus: Corpus) -> Asked:
    """Read the relevant queries of a collection's passages.

    Raises `InputError` if no passage has a query.
    """
    passages = corpus.tokens
    folder = corpus.collection
    qrels = read_qrels(folder, ASKED_SPLIT)
    relevant = qrels[(qrels["grade"] > 0) & (qrels["passage"] < len(passages))]
    if relevant.empty:
        raise InputError(
            f"{folder} has no passage with a relevant query of split {ASKED_SPLIT}; allowed with "
            "context query: a collection that has some"
        )
    pairs = relevant.sort_values(["passage", "query"])
    rows, counts = np.unique(pairs["passage"].to_numpy(np.int64), return_counts=True)
    tokens = _joined(passages, sequences.queries_of(folder, ASKED_SPLIT, corpus.tokenizer, 1))
    numbers = len(passages) + pairs["query"].to_numpy(np.int64)
    return Asked(tokens, rows, numbers, starts_of(counts))


def _joined(*parts: Tokens) -> Tokens:
    """Join tokens end to end."""
    begins = np.cumsum([0, *(part.starts[-1] for part in parts)])[:-1]
    starts = [begin + part.starts[1:] for begin, part in zip(begins, parts, strict=True)]
    texts = [begin + part.text_starts for begin, part in zip(begins, parts, strict=True)]
    return Tokens(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([[0], *starts]),
        np.concatenate(texts),
        parts[0].word_starts,
    )


# --- files ----------------------------------------------------------------------------------------


def written(files: Sequence[str], corpus: Corpus) -> list[Asked]:
    """Read files of texts for a collection's passages; all share the tokens of all texts.

    Raises `InputError` for an unknown passage id, and for a passage without a text.
    """
    import pandas as pd  # imported late, because most jobs do not need it

    passages = corpus.tokens
    ids = pd.Index(read_passages(corpus.collection, ["passage_id"])["passage_id"].to_pandas())
    found = [_texts(Path(file), ids) for file in files]
    tokens = [sequences.queries(texts, corpus.tokenizer, 1) for _, texts in found]
    joined = _joined(passages, *tokens)
    every = np.arange(len(passages))
    results = []
    first = len(passages)
    for rows, texts in found:
        counts = np.bincount(rows, minlength=len(passages))
        own = np.arange(first, first + len(texts))
        results.append(Asked(joined, every, own, starts_of(counts)))
        first += len(texts)
    return results


def _texts(file: Path, ids: pd.Index) -> tuple[np.ndarray, list[str]]:
    """Read a file of texts: the passages' rows, ascending, and the texts in the same order."""
    numbered = list(read_texts(file))
    rows = ids.get_indexer([row[0] for _, row in numbered])
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        number, (name, _) = numbered[unknown[0]]
        raise InputError(
            f"{file}, line {number}: the passage id is {printable(name)}; expected an id of the "
            "collection"
        )
    missing = np.flatnonzero(np.bincount(rows, minlength=len(ids)) == 0)
    if len(missing):
        raise InputError(
            f"{file} has no text for {len(missing):,} of {len(ids):,} passages, such as "
            f"{printable(ids[missing[0]])}; expected a text for every passage"
        )
    order = np.argsort(rows, kind="stable")
    return rows[order], [numbered[index][1][1] for index in order.tolist()]
