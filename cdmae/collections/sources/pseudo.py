"""Queries made from the text of a collection without labels: a part of a passage asks for the rest of it.

==================  ====================================================================================================
``title``           the title asks for the text
``first_sentence``  the first sentence asks for what follows it
``span``            5 to 16 words in a row ask for the words around them: inverse cloze (Lee et al. 2019), cropping
                    (Izacard et al. 2022)
==================  ====================================================================================================

A passage loses the words that ask for it, because a retriever would otherwise learn to compare words. Passages without
a query are negatives: those too short for one, and those whose query another one has. What is searched in the end is
the collection itself, not this one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from cdmae import collections
from cdmae.errors import InputError
from cdmae.fields import asdict, parse, setting, show

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from cdmae.collections.store import Collection

SPAN = (5, 16)  # words, at least and at most
LEAST = (3, 5)  # words of a query, and of what is left of its passage
PARTS = {  # that a passage needs, by method
    "title": f"a title of {LEAST[0]} words or more and a text of {LEAST[1]} or more",
    "first_sentence": f"a first sentence of {LEAST[0]} words or more and {LEAST[1]} or more behind it",
    "span": f"{SPAN[0]} to {SPAN[1]} words in a row and {LEAST[1]} or more around them",
}
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")
Passage = tuple[str, str, str]  # id, title, text


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The keys of a collection whose queries are made from another one's text."""

    of: dict[str, Any] = setting(meaning="the collection whose text it is: its `source` and the settings of that")
    method: Literal["title", "first_sentence", "span"] = setting("first_sentence", meaning="what asks for the rest")
    queries: int = setting(0, meaning="how many are trained on, by a stable hash; 0: all", low=0)
    dev: int = setting(0, meaning="how many, others, are the split dev; they tell how training goes", low=0)

    def __post_init__(self) -> None:
        """Refuse a collection that is itself made of another; the settings of the other one get their types."""
        if self.of.get("source") == "pseudo":
            raise InputError("of.source is pseudo; allowed: another source")
        _, own = _base(self)
        typed = asdict(own) | {"source": str(self.of["source"])}
        object.__setattr__(self, "of", {key: typed[key] for key in self.of})  # settings are frozen


def _base(settings: Settings) -> tuple[ModuleType, Any]:
    """Return the source of the text, and its settings."""
    source = collections.source(str(settings.of.get("source", "")))
    own = {key: value for key, value in settings.of.items() if key != "source"}
    return source, parse(source.Settings, own, "of")


def splits(settings: Settings) -> dict[str, bool]:
    """Return ``train``, and ``dev`` if there is one; both have judgments."""
    return {"train": True} | ({"dev": True} if settings.dev else {})


def depends(settings: Settings) -> list[Path]:
    """List the files of the collection whose text it is."""
    source, own = _base(settings)
    return source.depends(own)


def version(settings: Settings) -> dict[str, str]:
    """Return the version of the collection whose text it is."""
    source, own = _base(settings)
    return source.version(own)


def expected(settings: Settings) -> tuple[int, float, dict[str, int]]:
    """Estimate passages, words in one, and queries: one a passage at most."""
    source, own = _base(settings)
    passages, words, _ = source.expected(own)
    train = min(passages - settings.dev, settings.queries or passages)
    return passages, words, {"train": train} | ({"dev": settings.dev} if settings.dev else {})


def check(settings: Settings, name: str) -> dict[str, int]:
    """Read everything; raises `InputError` where the text is wrong, or gives no query."""
    source, own = _base(settings)
    source.check(own, name)
    return _queries(settings)["split"].value_counts().to_dict()


def load(settings: Settings, threads: int = 1) -> Collection:
    """Make the queries, then divide the passages as they are written."""
    import pyarrow as pa

    from cdmae.collections.store import PASSAGES, Collection

    def whole(row: Passage) -> Passage:  # a title that asks for one passage would find the others that have it
        return (row[0], "", row[2]) if settings.method == "title" else row

    queries = _queries(settings, threads)
    asked = set(queries["passage_id"])

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in _passages(settings, threads):
            parts = ((row, divided(*row, settings.method)) for row in rows)
            rest = [(row[0], *part[1:]) if part and row[0] in asked else whole(row) for row, part in parts]
            columns = zip(PASSAGES.types, zip(*rest, strict=True), strict=True)
            yield pa.record_batch([pa.array(column, dtype) for dtype, column in columns], schema=PASSAGES)

    by_split = {split: queries[queries["split"] == split].reset_index(drop=True) for split in splits(settings)}
    return Collection(
        pa.RecordBatchReader.from_batches(PASSAGES, batches()),
        {split: frame[["query_id", "text"]] for split, frame in by_split.items()},
        {split: frame[["query_id", "passage_id"]].assign(grade=1) for split, frame in by_split.items()},
        {
            "source": "pseudo",
            "method": settings.method,
            "queries": {split: {"made": len(by_split[split])} for split in by_split},
            "of": settings.of,
        },
    )


def divided(name: str, title: str, text: str, method: str) -> tuple[str, str, str] | None:
    """Divide a passage into a query and the title and text that are left; None where it is too short."""
    query, rest = "", text
    if method == "title":
        query, title = title, ""
    elif method == "first_sentence":
        query, *following = _SENTENCE.split(text.strip(), maxsplit=1)
        rest = "".join(following)
    else:
        words, number = text.split(), _hash(name)
        length = SPAN[0] + number % (SPAN[1] - SPAN[0] + 1)
        begin = (number >> 8) % max(1, len(words) - length + 1)
        query, rest = " ".join(words[begin : begin + length]), " ".join([*words[:begin], *words[begin + length :]])
    return (query, title, rest) if len(query.split()) >= LEAST[0] and len(rest.split()) >= LEAST[1] else None


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def _passages(settings: Settings, threads: int) -> Iterator[list[Passage]]:
    """Yield the passages of the text, some at a time."""
    import pyarrow as pa

    source, own = _base(settings)
    passages = source.load(own, threads).passages
    for batch in passages.to_batches() if isinstance(passages, pa.Table) else passages:
        if len(batch):
            yield list(zip(*(batch[key].to_pylist() for key in ("passage_id", "title", "text")), strict=True))


def _queries(settings: Settings, threads: int = 1) -> pd.DataFrame:
    """Return a frame (query_id, passage_id, text, split), a row a passage that has a query.

    ``dev`` takes the first ones by a hash of the passage's id, ``train`` the next ones.
    """
    import numpy as np
    import pandas as pd

    divide = partial(divided, method=settings.method)
    passages, asking = 0, []
    for rows in _passages(settings, threads):
        passages += len(rows)
        asking += [(row[0], part[0]) for row in rows if (part := divide(*row))]
    if not asking:
        others = " or ".join(method for method in PARTS if method != settings.method)
        raise InputError(
            f"method is {settings.method}, but none of the {passages:,} passages of "
            f"{', '.join(f'{key} {show(value)}' for key, value in settings.of.items())} has {PARTS[settings.method]}; "
            f"another method may help: {others}"
        )
    frame = pd.DataFrame(asking, columns=["passage_id", "text"])
    frame = frame.drop_duplicates("text", ignore_index=True)  # passages of one file share its title
    if len(frame) <= settings.dev:
        raise InputError(
            f"dev is {settings.dev:,}, but {passages:,} passages give {len(frame):,} different queries by method "
            f"{settings.method}; allowed: up to {len(frame) - 1:,}, or another method"
        )
    frame["query_id"] = "pseudo-" + frame["passage_id"]
    if settings.queries or settings.dev:
        frame["order"] = frame["passage_id"].map(lambda name: _hash(f"order {name}"))
        frame = frame.sort_values("order", kind="stable")
    frame["split"] = np.where(np.arange(len(frame)) < settings.dev, "dev", "train")
    most = settings.dev + settings.queries if settings.queries else len(frame)
    return frame.head(most).sort_index()[["query_id", "passage_id", "text", "split"]]
