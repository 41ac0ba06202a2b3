"""Training examples: for each query a group of one positive and N - 1 negatives (section 3.4).

Hard negatives are a run over the training queries minus the positives and minus what the qrels exclude (BRIGHT's grade
of -100), and minus passages with the very text of these. None of them is a random negative, either. With a margin,
what the run scores nearly as high as the positive is barred like them. Some random passages stand beside the mined ones
(as in SimLM, 10 beside 200). What a query may draw from, its *pool*, is fixed for (seed, query); which of it an epoch
draws is fixed for (seed, epoch, query). Nothing here depends on the batch, on the number of devices or on a restart, so
a teacher knows beforehand what it will be asked about. Where the teacher is a run of others, which scores only what it
ranks, groups hold nothing else.

Shapes: `Q` queries of the split, `E` examples (queries with a positive and a negative), `P` passages, `N` group size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from cdmae.collections.store import EXCLUDED, read_qrels, read_queries, stream_passages
from cdmae.errors import InputError
from cdmae.log import say
from cdmae.models.ragged import Ragged, joined, starts_of
from cdmae.runs import Run, read_run
from cdmae.training.setup import seed_of

_BLOCK = 1 << 22  # list entries looked at together


@dataclass(frozen=True)
class Examples:
    """Every training query with its positives and its mined negatives, and how groups are drawn from them."""

    queries: np.ndarray  # int32 [E], rows of the split
    positives: Ragged  # E rows
    barred: Ragged  # E rows, what is no negative: the positives, what the qrels exclude and what the margin removes
    mined: Ragged  # E rows, best first, without what is barred
    texts: np.ndarray  # int64 [P], equal for passages of equal text
    group: int  # N
    random_negatives: int
    seed: int

    def __len__(self) -> int:
        """Return the number of examples E."""
        return len(self.queries)

    def pool(self, example: int) -> np.ndarray:
        """Return the negatives that an example may draw: the mined ones, then random ones; int32, at least N - 1."""
        mined = self.mined[example]
        number = max(self.random_negatives, self.group - 1 - len(mined))
        if not number:
            return mined
        generator = np.random.default_rng(seed_of(self.seed, "random negatives", int(self.queries[example])))
        return np.concatenate([mined, self._random(example, mined, number, generator)])

    def draw(self, examples: np.ndarray, epoch: int) -> np.ndarray:
        """Draw the groups of some examples in an epoch: int32 [B, N], the positive first.

        Of several positives an epoch takes the next; negatives are drawn from the pool without replacement.
        """
        groups = np.empty((len(examples), self.group), dtype=np.int32)
        for row, example in enumerate(examples):
            positives = self.positives[example]
            groups[row, 0] = positives[epoch % len(positives)]
            generator = np.random.default_rng(seed_of(self.seed, "group", epoch, int(self.queries[example])))
            groups[row, 1:] = generator.choice(self.pool(example), self.group - 1, replace=False, shuffle=False)
        return groups

    def drawn(self, example: int, epochs: int) -> np.ndarray:
        """Return all that an example draws in the first `epochs` epochs, int32, each passage once."""
        row = np.array([example])
        return np.unique(np.concatenate([self.draw(row, epoch)[0] for epoch in range(epochs)]))

    def order(self, epoch: int) -> np.ndarray:
        """Return the order in which an epoch visits the examples, int64 [E]."""
        return np.random.default_rng(seed_of(self.seed, "order", epoch)).permutation(len(self))

    def batches(self, queries: int, steps: int, start: int = 0) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield the steps from `start` to `steps`: (step, epoch, examples [B]), B = `queries`.

        The incomplete batch at the end of an epoch is left out: no batch holds a query twice.
        """
        per_epoch = len(self) // queries
        order = np.empty(0, dtype=np.int64)
        for step in range(start, steps):
            epoch, place = divmod(step, per_epoch)
            if place == 0 or not len(order):
                order = self.order(epoch)
            yield step, epoch, order[place * queries : (place + 1) * queries]

    def excluded(self, examples: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return which passages of the batch are barred as negatives of a query: bool [B, B x N].

        They would be false negatives that the qrels know of; texts equal to theirs count, too. The query's own positive
        is none.
        """
        barred, batch, rows = self.barred.take(examples), self.texts[groups.ravel()], np.arange(len(examples))
        same, places = np.nonzero(self.texts[barred.values][:, None] == batch)
        excluded = np.zeros((len(examples), len(batch)), dtype=bool)
        excluded[np.repeat(rows, barred.lengths)[same], places] = True
        excluded[rows, rows * groups.shape[1]] = False
        return excluded

    def _random(self, example: int, mined: np.ndarray, number: int, generator: np.random.Generator) -> np.ndarray:
        """Draw up to `number` distinct random passages, neither mined nor of the text of a barred one."""
        barred = self.texts[self.barred[example]]
        drawn = np.empty(0, dtype=np.int32)
        everything = number + len(mined) > len(self.texts) // 8  # a tiny collection: trying at random would take long
        for _ in range(1 if everything else 64):
            some = (
                generator.permutation(len(self.texts))
                if everything
                else generator.integers(len(self.texts), size=number + 8)
            ).astype(np.int32)
            some = some[~np.isin(some, mined) & ~np.isin(self.texts[some], barred)]
            drawn = np.concatenate([drawn, some])
            drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]  # distinct, in the order drawn
            if len(drawn) >= number:
                break
        if len(drawn) + len(mined) < self.group - 1:
            raise InputError(
                f"query {self.queries[example]} can have only {len(drawn) + len(mined)} negatives in a collection of "
                f"{len(self.texts)} passages; group is {self.group}; allowed: at most {len(drawn) + len(mined) + 1}"
            )
        return drawn[:number]


def read(
    collection: Path | str,
    negatives: Path | str,
    *,
    split: str,
    depth: int,
    group: int,
    random_negatives: int,
    seed: int,
    margin: float = 0.0,
    ranking: Path | str | None = None,
) -> tuple[Examples, dict[str, int]]:
    """Read the training examples of a collection's `split` from a run over its queries; say what was dropped.

    `depth` is how far down the run negatives are taken from; `ranking` is a teacher's run, to which groups are limited.
    The counts are those of `make`, without zeros. Raises `InputError` if the files do not fit together, or if they
    leave no example.
    """
    qrels, texts = read_qrels(collection, split), text_ids(collection)
    ids = read_queries(collection, split)["query_id"]
    queries = len(ids)
    runs = {path: read_run(path) for path in (negatives, ranking) if path}
    for path, run in runs.items():
        if len(run) != queries:
            raise InputError(f"{path} has {len(run)} queries, the split {split!r} of {collection} has {queries}")
        if (largest := run.passages.max(initial=-1)) >= len(texts):
            raise InputError(f"{path} names passage {largest}, but {collection} has {len(texts)} passages")
    draws = {"depth": depth, "group": group, "random_negatives": random_negatives, "seed": seed}
    examples, counts, named = make(runs[negatives], qrels, texts, **draws, margin=margin, ranking=runs.get(ranking))
    counts = {what: count for what, count in counts.items() if count}
    such = {what: f", such as query {ids[row]}{negatives}" for what, (row, negatives) in named.items()}
    dropped = "; ".join(f"{count:,} {what}{such.get(what, '')}" for what, count in counts.items())
    say(f"{len(examples):,} training queries of split {split}" + (f" ({dropped})" if dropped else ""))
    if not len(examples):
        raise InputError(
            f"no query of {collection}, split {split!r}, has a relevant passage and the negatives of a group: "
            f"{dropped or 'it has no queries'}; change the negatives, depth, margin, group or teacher"
        )
    return examples, counts


def make(
    run: Run,
    qrels: pd.DataFrame,
    texts: np.ndarray,
    *,
    depth: int,
    group: int,
    random_negatives: int,
    seed: int,
    margin: float = 0.0,
    ranking: Run | None = None,
) -> tuple[Examples, dict[str, int], dict[str, tuple[int, str]]]:
    """Make examples of a run minus the qrels; the counts say what was left out and why.

    Where queries are counted, the last result names the first of them: its row, and what became of its negatives.

    qrels: frame (query, passage, grade) of rows, sorted; grades of 1 and more are positive. texts: see `text_ids`.
    margin: see `_with_suspects`. A query that it leaves without a mined negative stays, with random ones.
    ranking: a teacher's run that scores only what it ranks. Nothing else is a positive or mined, and a query that is
    left without a positive or without a whole group is left out: random passages have no scores.
    """

    def lists(which: pd.Series) -> Ragged:
        rows = qrels[which & (qrels["passage"] < len(texts))]
        return Ragged(rows["passage"].to_numpy(np.int32), starts_of(np.bincount(rows["query"], minlength=len(run))))

    relevant = qrels["grade"] > 0
    positives, barred = lists(relevant), lists(relevant | (qrels["grade"] == EXCLUDED))
    mined, duplicates = _without(run, barred, texts, depth)
    judged, listed = positives.lengths > 0, mined.lengths
    learnt = judged & (listed > 0)
    if margin:
        barred = _with_suspects(run, positives, barred, depth, margin)
        mined, _ = _without(run, barred, texts, depth)
    trusted = mined.lengths
    if ranking is not None:
        positives, mined = _ranked(positives, ranking), _ranked(mined, ranking)
    scored, left = positives.lengths > 0, mined.lengths
    enough = (left >= group - 1) | (ranking is None)
    kept = learnt & scored & enough
    rows = np.flatnonzero(kept)
    columns = rows.astype(np.int32), positives.take(rows), barred.take(rows), mined.take(rows)
    examples = Examples(*columns, texts, group=group, random_negatives=random_negatives, seed=seed)
    counted = {
        "left out for want of a judged passage": ~judged,
        "left out for want of negatives": judged & ~learnt,
        "negatives removed that have the text of a judged passage": duplicates,
        "mined negatives removed by the margin": (listed - trusted)[kept].sum(),
        "mined negatives left by it": trusted[kept].sum() if margin else 0,
        "with random negatives only, because the margin removed all mined ones": kept & (trusted == 0),
        "left out because the teacher ranks no judged passage": learnt & ~scored,
        "left out because the teacher ranks too few negatives": learnt & scored & ~enough,
        "mined negatives removed that the teacher does not rank": (trusted - left)[kept].sum(),
        "with short lists, completed by random passages": kept & (left + random_negatives < group - 1),
    }
    named = {}
    for what, which in counted.items():
        if np.ndim(which) and which.any():
            row = int(np.argmax(which))
            steps = [f"{listed[row]} mined"]
            steps += [f"{trusted[row]} left by the margin"] if margin else []
            steps += [f"{left[row]} ranked by the teacher"] if ranking is not None else []
            named[what] = row, f" (negatives: {', '.join(steps)}, {group - 1} in a group)" if learnt[row] else ""
    return examples, {what: int(np.sum(which)) for what, which in counted.items()}, named


def text_ids(collection: Path | str) -> np.ndarray:
    """Return a number per passage, int64 [P], equal where title and text are, but for case and white space.

    Of the text, not of its word-pieces: a teacher with another tokenizer must know what its student draws. From a
    64-bit hash: among 10^8 compared pairs a false match is expected 5 x 10^-12 times.
    """
    hashes = [np.empty(0, np.uint64)]
    for passages in stream_passages(collection, ["title", "text"]):
        joined = pc.binary_join_element_wise(*passages.columns, " ", null_handling="skip")
        words = pc.binary_join(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(pc.utf8_lower(joined))), " ")
        hashes.append(pd.util.hash_array(words.to_numpy(), categorize=False))
    return np.unique(np.concatenate(hashes), return_inverse=True)[1].astype(np.int64, copy=False)


def _with_suspects(run: Run, positives: Ragged, barred: Ragged, depth: int, margin: float) -> Ragged:
    """Bar what is too good for a negative: s(q, d) > (1 - margin) s(q, d+), of several d+ the best.

    TopK-PercPos of NV-Retriever (Moreira et al. 2024, section 3), by the scores of the run that is mined. A positive
    below the best `depth` scores no higher than any of them: all are barred, whatever its score. Raises `InputError`
    for a positive with a score of 0 or less, because a share of that is no distance.
    """
    rows = []
    for query in range(len(run)):
        passages, scores = (values[:depth] for values in run.ranked(query))
        best = scores[np.isin(passages, positives[query])].max(initial=-np.inf)
        if -np.inf < best <= 0:
            raise InputError(
                f"margin is {margin:g}, a share of the positive's score, which is {best:g} for query {query} of the "
                "run; allowed: 0, or negatives of a system whose scores are above 0, such as BM25 or the cosine"
            )
        rows.append(np.union1d(barred[query], passages[scores > (1 - margin) * float(best)]))
    return Ragged.of(rows, np.int32)


def _ranked(lists: Ragged, run: Run) -> Ragged:
    """Keep of each list what the run ranks for the same query."""
    kept = [np.isin(lists[query], run.ranked(query)[0]) for query in range(len(run))]
    return lists.keep(np.concatenate([np.empty(0, bool), *kept]))


def _without(run: Run, barred: Ragged, texts: np.ndarray, depth: int) -> tuple[Ragged, int]:
    """Return the top `depth` of each list minus passages of a barred one's text; count those not barred themselves."""
    queries, lists = np.repeat(np.arange(len(run)), barred.lengths) * len(texts), Ragged(run.passages, run.starts)
    same, judged = (pd.Index(np.unique(queries + numbers)) for numbers in (texts[barred.values], barred.values))
    kept, duplicates = [Ragged.of([], np.int32)], 0
    step = max(1, _BLOCK // int(lists.lengths.max(initial=1)))
    for begin in range(0, len(run), step):
        rows = np.arange(begin, min(begin + step, len(run)))
        top = lists.take(rows, depth)
        queries = np.repeat(rows, top.lengths) * len(texts)
        equal = same.get_indexer(queries + texts[top.values]) >= 0
        duplicates += int((equal & (judged.get_indexer(queries + top.values) < 0)).sum())
        kept.append(top.keep(~equal))
    return joined(*kept), duplicates
