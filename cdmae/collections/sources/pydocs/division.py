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
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Turn harvested (name, summary, body) entries into passages (name, text), and judgments.

    The judgments have the columns split, query_id, text and passage_id. held_out: whether all
    queries are in the split ``test``.
    """
    frame = pd.DataFrame(entries, columns=["name", "summary", "text"])
    frame["row"] = pd.factorize(frame["text"].map(key_of))[0]  # of the passage
    frame["key"] = frame["summary"].map(key_of)  # of the query
    passages = frame.drop_duplicates("row", ignore_index=True)
    asked = frame.drop_duplicates(["row", "key"]).sort_values("row", kind="stable")
    pairs = near_duplicates(passages["text"].tolist())
    dropped = _dropped(asked.groupby("row")["key"].agg(list), pairs)
    asked = asked[~asked["row"].isin(dropped)]
    asked = asked[asked.groupby("key")["row"].transform("size") <= MOST_POSITIVES]
    first = asked.groupby("key").transform("first")  # of the query's entries
    same_query = zip(first["row"], asked["row"], strict=True)
    component_of = components(len(passages), [*pairs, *same_query])  # its first row
    names = passages["name"].to_numpy()
    judged = pd.DataFrame(
        {
            "split": "test" if held_out else list(map(split_of, names[component_of[first["row"]]])),
            "query_id": "query:" + first["name"],
            "text": first["summary"],
            "passage_id": names[asked["row"]],
        }
    )
    return passages.loc[~passages["row"].isin(dropped), ["name", "text"]], judged


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


def _dropped(asked: pd.Series, pairs: list[tuple[int, int]]) -> set[int]:
    """Return the second passage of each pair that also has near-duplicate summaries.

    asked: the keys of each passage's queries.
    """
    dropped: set[int] = set()
    for first, second in pairs:
        if first in dropped or second in dropped:
            continue
        for one, other in product(asked[first], asked[second]):
            words = set(one.split()), set(other.split())
            if len(words[0] & words[1]) >= THRESHOLD * len(words[0] | words[1]):
                dropped.add(second)
    return dropped
