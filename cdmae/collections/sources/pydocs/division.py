"""From (name, summary, body) to passages, queries, judgments and splits that share nothing.

Passages are distinct bodies; queries are distinct summaries. What belongs together, through a shared summary or through
bodies that are the same or nearly, forms a component, and a component lies in one split, so that no training query has
the passage, the words or the twin of a test query. The split of a component is a hash of its first member's name: it is
the same on every machine, and an object added elsewhere moves nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cdmae.collections.sources.pydocs import duplicates
from cdmae.collections.sources.pydocs.harvest import stable_share

TRAIN, DEV = 0.85, 0.925  # the bounds of the hash: 85 % train, 7.5 % dev, 7.5 % test
MOST_POSITIVES = 3  # a summary of more passages than this is a template, such as "Forward pass", and no query
_WORD = re.compile(r"\w+")


@dataclass
class Passage:
    """A distinct body, the first object it was found at, and the summaries of all objects that have it."""

    name: str
    text: str
    summaries: dict[str, tuple[str, str]] = field(default_factory=dict)  # key -> (text, name of the object)


@dataclass(frozen=True)
class Query:
    """A distinct summary, the first object it was found at, and its passages."""

    name: str
    text: str
    positives: tuple[str, ...]
    component: str


@dataclass(frozen=True)
class Divided:
    """All passages in the order of the harvest, the queries of each split, and what was counted on the way."""

    passages: list[Passage]
    queries: dict[str, list[Query]]
    counts: dict[str, int]


def divide(entries: Iterable[tuple[str, str, str]], held_out: bool) -> Divided:
    """Divide the (name, summary, body) of a harvest; a held-out package's queries are all of split ``test``."""
    passages = _distinct(entries)
    pairs = duplicates.near_duplicates([passage.text for passage in passages])
    dropped = _dropped(passages, pairs)
    by_summary: dict[str, list[int]] = {}
    for row, passage in enumerate(passages):
        if row not in dropped:
            for key in passage.summaries:
                by_summary.setdefault(key, []).append(row)
    templates = {key for key, rows in by_summary.items() if len(rows) > MOST_POSITIVES}
    shared = [(rows[0], row) for key, rows in by_summary.items() if key not in templates for row in rows[1:]]
    one, other = np.array(pairs + shared, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(len(passages), len(passages)))
    _, component = connected_components(graph, directed=False)  # a number for each passage
    components = np.unique(component, return_index=True)[1][component].tolist()  # its first passage
    queries: dict[str, list[Query]] = {"test": []} if held_out else {"train": [], "dev": [], "test": []}
    for key, rows in by_summary.items():
        if key not in templates:
            text, name = passages[rows[0]].summaries[key]
            component = passages[components[rows[0]]].name
            query = Query(name, text, tuple(passages[row].name for row in rows), component)
            queries["test" if held_out else split_of(component)].append(query)
    sizes = Counter(components)
    counts = {
        "distinct bodies": len(passages),
        "near-duplicate passages dropped": len(dropped),
        "templated summaries dropped": len(templates),
        "components": len(sizes),
        "largest component": max(sizes.values(), default=0),
    }
    return Divided([passage for row, passage in enumerate(passages) if row not in dropped], queries, counts)


def split_of(component: str) -> str:
    """Return the split of a component: train 85 %, dev 7.5 %, test 7.5 %, by a hash of its name."""
    share = stable_share(component)
    return "train" if share < TRAIN else "dev" if share < DEV else "test"


def key_of(text: str) -> str:
    """Return a text's words, without case and punctuation: texts with the same key are the same text."""
    return " ".join(_WORD.findall(text.casefold()))


def _distinct(entries: Iterable[tuple[str, str, str]]) -> list[Passage]:
    passages: dict[str, Passage] = {}
    for name, summary, body in entries:
        passage = passages.setdefault(key_of(body), Passage(name, body))
        passage.summaries.setdefault(key_of(summary), (summary, name))
    return list(passages.values())


def _dropped(passages: list[Passage], pairs: list[tuple[int, int]]) -> set[int]:
    """Return the later passages of pairs with near-duplicate bodies and summaries: the same documentation twice."""
    dropped: set[int] = set()
    for one, other in pairs:
        if one not in dropped and other not in dropped:
            summaries = [[text for text, _ in passages[row].summaries.values()] for row in (one, other)]
            if any(duplicates.similar_words(a, b) for a in summaries[0] for b in summaries[1]):
                dropped.add(other)
    return dropped
