"""Turn (name, summary, body) into passages, queries, judgments and splits that share nothing.

Passages are distinct bodies; queries are distinct summaries. Entries with the same summary, or with
equal or nearly equal bodies, form a component, and each component is in one split. No training
query therefore shares its words, its passage or a near-duplicate of its passage with a test query.
The split of a component follows from a hash of its first member's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pandas as pd

from cdmae.collections.leakage import components, key_of, stable_share, words_of

# upper bounds of the hash of a component: 85 % train, 7.5 % dev, 7.5 % test
TRAIN = 0.85
DEV = 0.925
# a summary of more passages is a template, such as "Forward pass", and not a query
MOST_POSITIVES = 3
THRESHOLD = 0.7  # the minimum Jaccard similarity of near-duplicates


def divide(
    entries: Iterable[tuple[str, str, str]], held_out: bool
) -> tuple[list[tuple[str, str]], pd.DataFrame]:
    """Turn harvested (name, summary, body) entries into passages (id, text), and queries.

    The frame of queries has the columns split, query_id, text and passage_id, the list of a
    query's passages. held_out: whether all queries are in the split ``test``.
    """
    texts: dict[str, tuple[str, str]] = {}  # the name and text of each distinct body
    summaries: dict[str, dict[str, tuple[str, str]]] = {}  # the names and texts of its queries
    for name, summary, body in entries:
        key = key_of(body)
        texts.setdefault(key, (name, body))
        summaries.setdefault(key, {}).setdefault(key_of(summary), (name, summary))
    passages = list(texts.values())
    asked = list(summaries.values())
    pairs = near_duplicates([body for _, body in passages])
    dropped = _dropped(asked, pairs)

    by_summary: dict[str, list[int]] = {}
    kept = [row for row in range(len(passages)) if row not in dropped]
    for row in kept:
        for key in asked[row]:
            by_summary.setdefault(key, []).append(row)
    chosen = {key: rows for key, rows in by_summary.items() if len(rows) <= MOST_POSITIVES}
    same_query = [(rows[0], row) for rows in chosen.values() for row in rows[1:]]
    component_of = components(len(passages), pairs + same_query).tolist()  # its first row

    queries = []
    for key, rows in chosen.items():
        name, text = asked[rows[0]][key]
        split = "test" if held_out else split_of(passages[component_of[rows[0]]][0])
        queries.append((split, f"query:{name}", text, [passages[row][0] for row in rows]))
    frame = pd.DataFrame(queries, columns=["split", "query_id", "text", "passage_id"])
    return [passages[row] for row in kept], frame


def split_of(component: str) -> str:
    """Return the split of a component: train 85 %, dev 7.5 %, test 7.5 %, by a hash of its name."""
    share = stable_share(component)
    if share < TRAIN:
        return "train"
    return "dev" if share < DEV else "test"


def near_duplicates(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Return the sorted pairs (i, j), i < j, of texts with similar sets of word trigrams."""
    from scipy.sparse import triu
    from sklearn.feature_extraction.text import CountVectorizer

    if not texts:
        return []
    counter = CountVectorizer(analyzer=_trigrams, binary=True, dtype=np.int32)
    trigrams = counter.fit_transform(texts)  # [texts, trigrams]
    sizes = np.asarray(trigrams.sum(axis=1)).ravel()
    common = triu(trigrams @ trigrams.T, k=1).tocoo()
    either = sizes[common.row] + sizes[common.col] - common.data
    near = common.data >= THRESHOLD * either
    return sorted(zip(common.row[near].tolist(), common.col[near].tolist(), strict=True))


def _trigrams(text: str) -> list[tuple[str, ...]]:
    words = words_of(text)
    return list(zip(words, words[1:], words[2:], strict=False))


def _dropped(asked: list[dict[str, tuple[str, str]]], pairs: list[tuple[int, int]]) -> set[int]:
    """Return the second passage of each pair that also has near-duplicate summaries."""
    dropped: set[int] = set()
    for first, second in pairs:
        if first in dropped or second in dropped:
            continue
        for one, other in product(asked[first], asked[second]):
            words = set(one.split()), set(other.split())
            if len(words[0] & words[1]) >= THRESHOLD * len(words[0] | words[1]):
                dropped.add(second)
    return dropped
