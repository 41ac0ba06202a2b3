"""Read a table of pairs as a run: the negatives and the scores that come with each query."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from cdmae.collections import pair_rows
from cdmae.collections.sources.pairs import key_of
from cdmae.collections.tables import fault
from cdmae.errors import InputError
from cdmae.log import say
from cdmae.retrieval.ranking import ranked
from cdmae.runs import Run


def read_run(
    path: Path, queries: pd.DataFrame, passages: pa.Table, depth: int, columns: dict[str, str]
) -> Run:
    """Read the best `depth` passages of each query: scored passages, or negatives in their order.

    queries: (query_id, text); passages: (passage_id, title, text). Queries and passages are found
    by their texts; queries of other splits are ignored. columns: the settings `query` and
    `positive` of the collection. Raises `InputError` if a passage is not in the collection, with
    file and line, and if the run would be empty.
    """
    query_rows = {key_of(text): row for row, text in enumerate(queries["text"])}
    passage_rows: dict[str, int] = {}
    for row, text in enumerate(passages["text"].to_pylist()):
        passage_rows.setdefault(key_of(text), row)
    lines: dict[tuple[int, int], float] = {}
    for number, pair in pair_rows.read(path, **columns):
        query = query_rows.get(key_of(pair.query))
        if query is None:
            continue
        listed = pair.positives + pair.negatives if pair.scores else pair.negatives
        values = pair.scores or [1.0 / rank for rank in range(1, len(listed) + 1)]
        for passage, score in zip(listed, values, strict=True):
            found = passage_rows.get(key_of(passage.text))
            if found is None:
                raise fault(path, number, "a passage is not in the collection")
            lines[query, found] = max(score, lines.get((query, found), score))
    if not lines:
        raise InputError(
            f"{path} has negatives or scores for none of the {len(queries):,} queries of the "
            "split; expected a table that has them for some"
        )
    found, listed = np.array(list(lines), np.int64).T
    scores = np.array(list(lines.values()), np.float32)
    ties = np.arange(len(lines))  # in the order of the table
    run = ranked(found, listed, scores, len(queries), depth, ties)
    empty = len(queries) - len(set(found.tolist()))
    if empty:
        say(f"{path}: {empty:,} of {len(queries):,} queries have no negatives or scores")
    return run
