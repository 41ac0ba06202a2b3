"""Runs as the text files that trec_eval, ir_measures and pyserini read: ``query_id Q0 passage_id rank score system``.

White space separates the columns and has no place in an id: where one holds some, it is written as in addresses,
``a%20b``, and so is every ``%``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.log import say
from cdmae.runs import Run

WHITE = r"[\s\p{Z}\x{0b}\x{1c}-\x{1f}\x{85}]|^$"  # what str.split() splits at, and nothing at all


def write_run(
    path: Path | str, run: Run, query_ids: Sequence[str], passage_ids: Sequence[str] | pa.Array, system: str
) -> None:
    """Write a run as text. The ids of millions of passages are an Arrow array, a tenth of as many Python objects.

    Those who read it order by score, and equal scores by passage id. So that they find the ranking of the run, an equal
    score is written as the next smaller float32.
    """
    if len(run) != len(query_ids):
        raise InputError(f"the run has {len(run)} queries and the split {len(query_ids)}; delete the run and run again")
    query_ids, passage_ids = names(query_ids, "query"), pa.array(names(passage_ids, "passage"), pa.string())
    with complete(path) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for row, query_id in enumerate(query_ids):
            passages, scores = run.ranked(row)
            hits = zip(passage_ids.take(pa.array(passages)).to_pylist(), distinct(scores).tolist(), strict=True)
            file.writelines(
                f"{query_id} Q0 {name} {rank} {score:.9g} {system}\n"  # nine digits hold a float32 exactly
                for rank, (name, score) in enumerate(hits, 1)
            )


def distinct(scores: np.ndarray) -> np.ndarray:
    """Make scores go down strictly, float32: one not below the one before becomes the next smaller number."""
    if np.all(scores[1:] < scores[:-1]):
        return scores
    falling = scores.astype(np.float32, copy=True)
    for i in range(1, len(falling)):
        if not falling[i] < falling[i - 1]:
            falling[i] = np.nextafter(falling[i - 1], np.float32(-np.inf))
    return falling


def names(ids: Sequence[str] | pa.Array, what: str) -> Sequence[str] | pa.Array:
    """Return the ids as these files can hold them, distinct like the ids; say so if they are not the ids themselves."""
    odd = pc.sum(pc.match_substring_regex(pa.array(ids, pa.string()), WHITE)).as_py()
    if not odd:
        return ids
    say(f"{odd:,} {what} ids hold white space, which separates the columns: written as in addresses, a%20b")
    ids = ids.to_pylist() if isinstance(ids, pa.Array) else ids
    return [re.sub(r"[\s%\x1c-\x1f]", lambda match: quote(match[0]), name) or "%" for name in ids]
