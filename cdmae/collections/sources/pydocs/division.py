"""Turn (name, summary, body) into passages, queries, judgments and splits that share nothing.

Passages are distinct bodies; queries are distinct summaries. Entries that share a summary, or whose
bodies are equal or nearly equal, form a component. A component is in one split, so that no training
query has the passage, the words or a near-duplicate of a test query. The split of a component is a
hash of its first member's name: it is the same on every machine, and new objects elsewhere do not
change it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cdmae.collections.sources.pydocs.harvest import stable_share

TRAIN, DEV = 0.85, 0.925  # the bounds of the hash: 85 % train, 7.5 % dev, 7.5 % test
MOST_POSITIVES = (
    3  # a summary of more passages than this is a template, such as "Forward pass", and no query
)
THRESHOLD = 0.7  # of the Jaccard similarity of near-duplicates
_WORD = re.compile(r"\w+")


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
    """Divide a harvest of (name, summary, body) into passages and queries with splits.

    A held-out package's queries are all in the split ``test``.
    """
    by_body: dict[str, _Passage] = {}
    for name, summary, body in entries:
        passage = by_body.setdefault(key_of(body), _Passage(name, body))
        passage.summaries.setdefault(key_of(summary), (summary, name))
    passages = list(by_body.values())
    pairs = near_duplicates([passage.text for passage in passages])
    dropped = _dropped(passages, pairs)
    by_summary: dict[str, list[int]] = {}
    for row, passage in enumerate(passages):
        for key in passage.summaries if row not in dropped else ():
            by_summary.setdefault(key, []).append(row)
    asked = {key: rows for key, rows in by_summary.items() if len(rows) <= MOST_POSITIVES}
    shared = [(rows[0], row) for rows in asked.values() for row in rows[1:]]
    one, other = np.array(pairs + shared, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(len(passages), len(passages)))
    _, component = connected_components(graph, directed=False)  # a number for each passage
    components = np.unique(component, return_index=True)[1][component].tolist()  # its first passage
    queries = []
    for key, rows in asked.items():
        text, name = passages[rows[0]].summaries[key]
        split = "test" if held_out else split_of(passages[components[rows[0]]].name)
        queries.append((split, f"query:{name}", text, [passages[row].name for row in rows]))
    sizes = Counter(components)
    counts = {
        "distinct bodies": len(passages),
        "near-duplicate passages dropped": len(dropped),
        "templated summaries dropped": len(by_summary) - len(asked),
        "components": len(sizes),
        "largest component": max(sizes.values(), default=0),
    }
    kept = [
        (passage.name, passage.text) for row, passage in enumerate(passages) if row not in dropped
    ]
    return (
        pd.DataFrame(kept, columns=["passage_id", "text"]),
        pd.DataFrame(queries, columns=["split", "query_id", "text", "passage_id"]),
        counts,
    )


def split_of(component: str) -> str:
    """Return the split of a component: train 85 %, dev 7.5 %, test 7.5 %, by a hash of its name."""
    share = stable_share(component)
    return "train" if share < TRAIN else "dev" if share < DEV else "test"


def key_of(text: str) -> str:
    """Return a text's words without case and punctuation; equal keys mean equal texts."""
    return " ".join(_words(text))


def near_duplicates(texts: Sequence[str], threshold: float = THRESHOLD) -> list[tuple[int, int]]:
    """Return the sorted pairs (i, j), i < j, of texts with similar sets of word trigrams.

    threshold: the least similarity.
    """
    numbers: dict[str, int] = {}
    trigrams = []
    for text in texts:
        words = [numbers.setdefault(word, len(numbers)) for word in _words(text)]
        threes = zip(words, words[1:], words[2:], strict=False)
        # a third of the memory of tuples
        trigrams.append({(a << 48) + (b << 24) + c for a, b, c in threes})
    times = Counter(chain.from_iterable(trigrams))
    rows_with: defaultdict[int, list[int]] = defaultdict(list)
    pairs = []
    for row, own in enumerate(trigrams):
        rarest = sorted(own, key=lambda trigram: (times[trigram], trigram))[
            : len(own) - int(threshold * len(own)) + 1
        ]
        shared = [trigram for trigram in rarest if times[trigram] > 1]
        candidates = {other for trigram in shared for other in rows_with[trigram]}
        pairs += [(other, row) for other in candidates if _similar(trigrams[other], own, threshold)]
        for trigram in shared:
            rows_with[trigram].append(row)
    return sorted(pairs)


def _dropped(passages: list[_Passage], pairs: list[tuple[int, int]]) -> set[int]:
    """Return the later passages of pairs whose bodies and summaries are near-duplicates."""
    dropped: set[int] = set()
    for pair in pairs:
        if not dropped.intersection(pair):
            one, other = ([set(key.split()) for key in passages[row].summaries] for row in pair)
            if any(_similar(a, b, THRESHOLD) for a in one for b in other):
                dropped.add(pair[1])
    return dropped


def _similar(one: set, other: set, threshold: float) -> bool:
    """Tell whether the Jaccard similarity of two sets is at least `threshold`."""
    both = len(one & other)
    return both >= threshold * (len(one) + len(other) - both)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
