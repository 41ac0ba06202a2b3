"""Training examples: for each query a group of one positive and N - 1 negatives (section 3.4).

Negatives are mined from a run over the training queries (`cdmae.finetuning.selection`). Random
passages are added to them (SimLM adds 10 random passages to 200 mined ones). The passages that a
query may draw form its *pool*, which is fixed for (seed, query). The passages that it draws in an
epoch are fixed for (seed, epoch, query). Neither depends on the batch, the number of devices or a
restart. A teacher's scores can therefore be computed before its student is trained.

Shapes: `Q` queries of the split, `E` examples (queries with a positive and a negative), `P`
passages, `N` group size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from cdmae.collections.store import read_qrels, read_queries, stream_passages
from cdmae.errors import InputError
from cdmae.fields import pick
from cdmae.finetuning.labels import Labels
from cdmae.finetuning.selection import select
from cdmae.log import say
from cdmae.models.ragged import Ragged
from cdmae.runs import read_run
from cdmae.training.setup import seed_of

LISTS = ("positives", "barred", "mined")  # of `Examples`
# (query, positive, negatives [M]) -> the probability of each negative, float64 [M]
Chances = Callable[[int, int, np.ndarray], np.ndarray]
ATTEMPTS = 64  # random draws before the collection is considered too small for the group


@dataclass(frozen=True)
class Drawing:
    """The settings of a stage that decide which passages are drawn.

    split: of the queries. depth: the number of top ranks from which negatives are taken. group: the
    group size N. train_queries: the number of queries to use, or 0 for all. whole_pool: whether a
    teacher must score passages that are not drawn.
    """

    split: str
    depth: int
    group: int
    random_negatives: int
    seed: int
    train_queries: int = 0
    whole_pool: bool = False

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Drawing:
        """Take the settings by `Stage.drawn`, with the seed of the training."""
        return cls(**pick(settings, [field.name for field in fields(cls)]))


@dataclass(frozen=True)
class Examples:
    """Training queries with their positives and mined negatives, from which groups are drawn."""

    queries: np.ndarray  # int32 [E], rows of the split
    positives: Ragged  # E rows
    barred: Ragged  # E rows, never negatives: relevant or excluded
    mined: Ragged  # E rows, best first
    texts: np.ndarray  # int64 [P], equal for passages with the same text
    drawing: Drawing
    topics: np.ndarray | None = None  # int64 [E]; None: batches are random
    chances: Chances | None = None  # None: all negatives of a pool are equally likely

    def __len__(self) -> int:
        """Return the number of examples E."""
        return len(self.queries)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that `of_arrays` needs."""
        lists = {name: getattr(self, name) for name in LISTS}
        values = {f"{name}_values": ragged.values for name, ragged in lists.items()}
        starts = {f"{name}_starts": ragged.starts for name, ragged in lists.items()}
        return {"queries": self.queries, "texts": self.texts, **values, **starts}

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray], drawing: Drawing) -> Examples:
        """Return the examples with the arrays of others."""
        lists = {name: Ragged(arrays[f"{name}_values"], arrays[f"{name}_starts"]) for name in LISTS}
        return cls(queries=arrays["queries"], texts=arrays["texts"], **lists, drawing=drawing)

    def pool(self, example: int) -> np.ndarray:
        """Return an example's mined negatives, then random ones: int32, at least N - 1 in all."""
        mined = self.mined[example]
        number = max(self.drawing.random_negatives, self.drawing.group - 1 - len(mined))
        if not number:
            return mined
        query = int(self.queries[example])
        generator = np.random.default_rng(seed_of(self.drawing.seed, "random negatives", query))
        return np.concatenate([mined, self._random(example, mined, number, generator)])

    def draw(self, examples: np.ndarray, epoch: int) -> np.ndarray:
        """Draw the groups of the given examples in an epoch: int32 [B, N], the positive first.

        If a query has several positives, each epoch uses the next one. Negatives are drawn from the
        pool without replacement, with their `chances`.
        """
        groups = np.empty((len(examples), self.drawing.group), dtype=np.int32)
        for row, example in enumerate(examples):
            positives = self.positives[example]
            groups[row, 0] = positives[epoch % len(positives)]
            query = int(self.queries[example])
            generator = np.random.default_rng(seed_of(self.drawing.seed, "group", epoch, query))
            pool = self.pool(example)
            chances = self.chances and self.chances(query, int(groups[row, 0]), pool)
            groups[row, 1:] = generator.choice(
                pool, self.drawing.group - 1, replace=False, p=chances, shuffle=False
            )
        return groups

    def drawn(self, example: int, epochs: int) -> np.ndarray:
        """Return the distinct passages that a teacher must score for an example, int32.

        These are the passages that the example draws in its first epochs, or its whole pool.
        """
        row = np.array([example])
        drawn = [self.draw(row, epoch)[0] for epoch in range(epochs)]
        if self.drawing.whole_pool:
            drawn.append(self.pool(example))
        return np.unique(np.concatenate(drawn))

    def order(self, epoch: int, queries: int) -> np.ndarray:
        """Return the order of the examples in an epoch, int64, for batches of B = `queries`.

        With topics, the examples are sorted by topic, divided into batches, and the batches are
        shuffled. A batch has a second topic if one ends in it.
        """
        generator = np.random.default_rng(seed_of(self.drawing.seed, "order", epoch))
        order = generator.permutation(len(self))
        if self.topics is None:
            return order
        places = generator.permutation(self.topics.max(initial=0) + 1)
        order = order[np.argsort(places[self.topics[order]], kind="stable")]
        batches = len(order) // queries
        divided = order[: batches * queries].reshape(batches, queries)
        return divided[generator.permutation(batches)].ravel()

    def batches(
        self, queries: int, steps: int, start: int = 0
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield the steps from `start` to `steps`: (step, epoch, examples [B]), B = `queries`.

        The incomplete batch at the end of an epoch is omitted: no batch repeats a query.
        """
        per_epoch = len(self) // queries
        order = np.empty(0, dtype=np.int64)
        for step in range(start, steps):
            epoch, batch = divmod(step, per_epoch)
            if batch == 0 or not len(order):
                order = self.order(epoch, queries)
            yield step, epoch, order[batch * queries : (batch + 1) * queries]

    def excluded(self, examples: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return a mask of the passages that must not be negatives of each query: bool [B, B x N].

        These are false negatives according to the qrels, and passages with the text of such a
        passage. The query's own positive is never masked.
        """
        barred = self.barred.take(examples)
        batch = self.texts[groups.ravel()]
        rows = np.arange(len(examples))
        same_text, columns = np.nonzero(self.texts[barred.values][:, None] == batch)
        excluded = np.zeros((len(examples), len(batch)), dtype=bool)
        excluded[np.repeat(rows, barred.lengths)[same_text], columns] = True
        excluded[rows, rows * groups.shape[1]] = False
        return excluded

    def _random(
        self, example: int, mined: np.ndarray, number: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Draw up to `number` distinct random passages: neither mined nor with a barred text.

        Raises `InputError` if the collection has too few passages for a group.
        """
        passages = len(self.texts)
        barred = self.texts[self.barred[example]]
        drawn = np.empty(0, dtype=np.int32)
        # In a tiny collection, drawing until enough passages are distinct would take too long.
        tiny = number + len(mined) > passages // 8
        for _ in range(1 if tiny else ATTEMPTS):
            if tiny:
                some = generator.permutation(passages)
            else:
                some = generator.integers(passages, size=number + 8)
            some = some.astype(np.int32)
            some = some[~np.isin(some, mined) & ~np.isin(self.texts[some], barred)]
            drawn = np.concatenate([drawn, some])
            firsts = np.unique(drawn, return_index=True)[1]
            drawn = drawn[np.sort(firsts)]  # distinct, in the order of the draws
            if len(drawn) >= number:
                break
        most = len(drawn) + len(mined)
        if most < self.drawing.group - 1:
            raise InputError(
                f"query {self.queries[example]} can have only {most} negatives in a collection of "
                f"{len(self.texts)} passages; group is {self.drawing.group}; expected at most "
                f"{most + 1}"
            )
        return drawn[:number]


def read_examples(
    collection: Path | str,
    negatives: Path | str,
    drawing: Drawing,
    ranking: Path | str | None = None,
    labels: Labels | None = None,
) -> tuple[Examples, dict[str, int]]:
    """Read a split's training examples from a run over its queries, and log dropped queries.

    ranking: the run of a teacher that is no reranker; groups then contain only passages that this
    run ranks, because it scores no others. labels: of the queries of a split without judgments. The
    second result counts queries that are left out, by reason. Raises `InputError` if the files do
    not match, or if no example remains.
    """
    if labels:
        ranking = labels.teacher  # which scores no passages beyond the mined ones
    split = drawing.split
    texts = text_ids(collection)
    ids = read_queries(collection, split)["query_id"]
    runs = {path: read_run(path) for path in (negatives, ranking) if path}
    for path, run in runs.items():
        if len(run) != len(ids):
            raise InputError(
                f"{path} has {len(run)} queries, but the split {split!r} of {collection} "
                f"has {len(ids)}; delete the run and run again"
            )
    mined = runs[negatives]
    qrels = labels.qrels(mined, drawing.depth) if labels else read_qrels(collection, split)
    found, counts = select(mined, qrels, texts, drawing, ids, runs.get(ranking))
    examples = Examples(**found, texts=texts, drawing=drawing)
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in counts.items())
    say(
        f"{len(examples):,} training queries of split {split}"
        + (f" ({reasons})" if reasons else "")
    )
    if not len(examples):
        raise InputError(
            f"no query of {collection}, split {split!r}, has a relevant passage and enough "
            f"negatives for a group: {reasons or 'it has no queries'}; change the "
            "negatives, depth, group, labels or teacher"
        )
    return examples, counts


def text_ids(collection: Path | str) -> np.ndarray:
    """Return one number per passage, int64 [P], equal for passages with the same words.

    Case and white space are ignored. Texts are compared instead of word-pieces, because a teacher
    with another tokenizer must select the same passages. They are compared by 64-bit hashes: among
    10^8 pairs, 5 x 10^-12 false matches are expected.
    """
    hashes = [np.empty(0, np.uint64)]
    for passages in stream_passages(collection, ["title", "text"]):
        joined = pc.binary_join_element_wise(*passages.columns, " ", null_handling="skip")
        trimmed = pc.utf8_trim_whitespace(pc.utf8_lower(joined))
        words = pc.binary_join(pc.utf8_split_whitespace(trimmed), " ")
        hashes.append(pd.util.hash_array(words.to_numpy(), categorize=False))
    return np.unique(np.concatenate(hashes), return_inverse=True)[1].astype(np.int64, copy=False)
