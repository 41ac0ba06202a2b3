"""Turn (name, summary, body) into passages, queries, judgments and splits that share nothing.

Passages are distinct bodies; queries are distinct summaries. Entries with the same summary, or with
equal or nearly equal bodies, form a component, and each component is in one split. No training
query therefore shares its words, its passage or a near-duplicate of its passage with a test query.
The split of a component follows from a hash of its first member's name. It is the same on every
machine, and new objects in other components do not change it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, product

import pandas as pd

from cdmae.collections.leakage import components, key_of, stable_share, words_of

# upper bounds of the hash of a component: 85 % train, 7.5 % dev, 7.5 % test
TRAIN = 0.85
DEV = 0.925
# a summary of more passages is a template, such as "Forward pass", and not a query
MOST_POSITIVES = 3
THRESHOLD = 0.7  # the minimum Jaccard similarity of near-duplicates


@dataclass
class _Passage:
    """A distinct body, its first object, and the summaries of all objects with this body."""

    name: str
    text: str
    # key -> (text, name of the object)
    summaries: dict[str, tuple[str, str]] = field(default_factory=dict)


def divide(
    entries: Iterable[tuple[str, str, str]], held_out: bool
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, int]]:
    """Turn harvested (name, summary, body) entries into passages, and queries with their splits.

    held_out: whether the package is held out; all its queries are in the split ``test``.
    """
    passages = _distinct(entries)
    pairs = near_duplicates([passage.text for passage in passages])
    dropped = _dropped(passages, pairs)
    kept = [row for row in range(len(passages)) if row not in dropped]

    by_summary: dict[str, list[int]] = {}
    for row in kept:
        for key in passages[row].summaries:
            by_summary.setdefault(key, []).append(row)
    asked = {key: rows for key, rows in by_summary.items() if len(rows) <= MOST_POSITIVES}
    same_query = [(rows[0], row) for rows in asked.values() for row in rows[1:]]
    component_of = components(len(passages), pairs + same_query).tolist()  # key -> its first row

    queries = []
    for key, rows in asked.items():
        text, name = passages[rows[0]].summaries[key]
        split = "test" if held_out else split_of(passages[component_of[rows[0]]].name)
        queries.append((split, f"query:{name}", text, [passages[row].name for row in rows]))
    sizes = Counter(component_of)
    counts = {
        "distinct bodies": len(passages),
        "near-duplicate passages dropped": len(dropped),
        "templated summaries dropped": len(by_summary) - len(asked),
        "components": len(sizes),
        "largest component": max(sizes.values(), default=0),
    }
    texts = [(passages[row].name, passages[row].text) for row in kept]
    return (
        pd.DataFrame(texts, columns=["passage_id", "text"]),
        pd.DataFrame(queries, columns=["split", "query_id", "text", "passage_id"]),
        counts,
    )


def _distinct(entries: Iterable[tuple[str, str, str]]) -> list[_Passage]:
    """Join the objects with equal bodies, in the order of the first object."""
    by_body: dict[str, _Passage] = {}
    for name, summary, body in entries:
        passage = by_body.setdefault(key_of(body), _Passage(name, body))
        passage.summaries.setdefault(key_of(summary), (summary, name))
    return list(by_body.values())


def split_of(component: str) -> str:
    """Return the split of a component: train 85 %, dev 7.5 %, test 7.5 %, by a hash of its name."""
    share = stable_share(component)
    if share < TRAIN:
        return "train"
    return "dev" if share < DEV else "test"


def near_duplicates(texts: Sequence[str], threshold: float = THRESHOLD) -> list[tuple[int, int]]:
    """Return the sorted pairs (i, j), i < j, of texts with similar sets of word trigrams.

    threshold: the minimum Jaccard similarity. Similar sets share one of their rarest elements, and
    other pairs are not compared (prefix filtering, Chaudhuri et al. 2006).
    """
    numbers: dict[str, int] = {}
    trigrams = [_trigrams(text, numbers) for text in texts]
    frequency = Counter(chain.from_iterable(trigrams))
    rows_with: defaultdict[int, list[int]] = defaultdict(list)
    pairs = []
    for row, own in enumerate(trigrams):
        by_rarity = sorted(own, key=lambda trigram: (frequency[trigram], trigram))
        rarest = by_rarity[: len(own) - int(threshold * len(own)) + 1]
        candidates: set[int] = set()
        for trigram in rarest:
            if frequency[trigram] > 1:
                candidates.update(rows_with[trigram])
                rows_with[trigram].append(row)
        for candidate in candidates:
            if _similar(trigrams[candidate], own, threshold):
                pairs.append((candidate, row))
    return sorted(pairs)


def _trigrams(text: str, numbers: dict[str, int]) -> set[int]:
    """Return the word trigrams of a text as integers, which take a third of the memory of tuples.

    numbers: the number of each word; new words are added.
    """
    words = [numbers.setdefault(word, len(numbers)) for word in words_of(text)]
    triples = zip(words, words[1:], words[2:], strict=False)
    return {(a << 48) + (b << 24) + c for a, b, c in triples}


def _dropped(passages: list[_Passage], pairs: list[tuple[int, int]]) -> set[int]:
    """Return the second passage of each pair that also has near-duplicate summaries."""
    dropped: set[int] = set()
    for first, second in pairs:
        if first in dropped or second in dropped:
            continue
        summaries = product(_summaries(passages[first]), _summaries(passages[second]))
        if any(_similar(one, other, THRESHOLD) for one, other in summaries):
            dropped.add(second)
    return dropped


def _summaries(passage: _Passage) -> list[set[str]]:
    """Return the words of each summary of a passage."""
    return [set(key.split()) for key in passage.summaries]


def _similar(one: set, other: set, threshold: float) -> bool:
    """Return whether the Jaccard similarity of two sets is at least `threshold`."""
    both = len(one & other)
    return both >= threshold * (len(one) + len(other) - both)
