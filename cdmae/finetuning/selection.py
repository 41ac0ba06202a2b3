"""Select passages for training queries: a run minus the qrels, then filters (section 3.4).

Filters, in this order:

1. `mined`: keeps the best passages of the run. It removes relevant passages, passages that the
   qrels exclude (BRIGHT's grade of -100), and copies of either.
2. `limit_by_margin`: removes passages that the run scores nearly as high as the relevant passage.
3. `limit_to_ranked`: keeps only passages that a teacher's run ranks.
4. `limit_to_queries`: keeps some of the queries that are left.

Shapes: `Q` queries of the split, `P` passages.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cdmae.collections.leakage import stable_share
from cdmae.collections.store import EXCLUDED
from cdmae.errors import InputError
from cdmae.models.ragged import Ragged, starts_of
from cdmae.runs import Run


@dataclass
class Selection:
    """Positives and negatives of every query of a split, with a record of each filter's removals.

    All lists have Q rows. Filters replace the lists; a query that a filter drops keeps its row.
    """

    run: Run
    texts: np.ndarray  # int64 [P], equal for passages of equal text
    depth: int
    positives: Ragged
    barred: Ragged  # never a negative: relevant, excluded, or above the margin
    negatives: Ragged  # best first
    kept: np.ndarray  # bool [Q]
    left_out: dict[str, np.ndarray] = field(default_factory=dict)  # by reason, bool [Q]
    # removed negatives per query, int64 [Q], by reason
    removed: dict[str, np.ndarray] = field(default_factory=dict)
    # negatives per query after each filter
    sizes: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def mined(cls, run: Run, qrels: pd.DataFrame, texts: np.ndarray, depth: int) -> Selection:
        """Mine the best `depth` passages of each query of a run.

        qrels: a sorted frame (query, passage, grade) of row numbers; grades from 1 are relevant.
        """
        known = qrels[qrels["passage"] < len(texts)]
        relevant = known["grade"] > 0
        positives = _by_query(known[relevant], len(run))
        barred = _by_query(known[relevant | (known["grade"] == EXCLUDED)], len(run))
        nothing = Ragged.of([[]] * len(run), np.int32)
        everyone = np.ones(len(run), dtype=bool)
        selection = cls(run, texts, depth, positives, barred, nothing, everyone)
        selection._leave_out("left out without a relevant passage", positives.lengths == 0)
        copies = selection._mine()
        selection._leave_out("left out without negatives", selection.negatives.lengths == 0)
        selection.removed["negatives removed as copies of a judged passage"] = copies
        selection.sizes["mined"] = selection.negatives.lengths
        return selection

    def limit_by_margin(self, margin: float) -> None:
        """Bar passages that score too high to be negatives: s(q, d) > (1 - margin) s(q, d+).

        d+ is the relevant passage with the best score.

        This is TopK-PercPos of NV-Retriever (Moreira et al. 2024, section 3), applied to the scores
        of the mined run. If no relevant passage is among the best `depth`, its score is at most the
        score of each of them, and all are barred. A query without negatives after this filter is
        kept with random negatives. Raises `InputError` for a relevant passage with a score of 0 or
        less, because the margin is relative to the score.
        """
        barred = []
        for query in range(len(self.run)):
            passages, scores = (values[: self.depth] for values in self.run.ranked(query))
            best = scores[np.isin(passages, self.positives[query])].max(initial=-np.inf)
            if -np.inf < best <= 0:
                raise InputError(
                    f"margin is {margin:g}, a share of the relevant passage's score, but this "
                    f"score is {best:g} for query {query} of the run; allowed: a margin of 0, or "
                    "negatives from a system whose scores are above 0, such as BM25 or cosine "
                    "similarity"
                )
            suspects = passages[scores > (1 - margin) * float(best)]
            barred.append(np.union1d(self.barred[query], suspects))
        self.barred = Ragged.of(barred, np.int32)
        before = self.negatives.lengths
        self._mine()
        left = self.negatives.lengths
        self.removed["mined negatives removed by the margin"] = before - left
        self.removed["mined negatives left by it"] = left
        self.removed["with random negatives only, because the margin removed all mined ones"] = (
            left == 0
        )
        self.sizes["left by the margin"] = left

    def limit_to_ranked(self, teacher: Run, negatives: int) -> None:
        """Keep only passages that a teacher's run ranks, since the run scores no other passages.

        A query is omitted if no relevant passage or fewer than `negatives` negatives remain.
        """
        before = self.negatives.lengths
        self.positives = _ranked(self.positives, teacher)
        self.negatives = _ranked(self.negatives, teacher)
        left = self.negatives.lengths
        self._leave_out(
            "left out because the teacher ranks no judged passage", self.positives.lengths == 0
        )
        self._leave_out("left out because the teacher ranks too few negatives", left < negatives)
        self.removed["mined negatives removed as not ranked by the teacher"] = before - left
        self.sizes["ranked by the teacher"] = left

    def limit_to_queries(self, ids: pd.Series, count: int) -> None:
        """Keep `count` of the queries that are left; raise `InputError` if there are fewer.

        ids: the ids of all Q queries. The choice depends only on them, so a smaller number chooses
        some of the queries of a larger number.
        """
        left = np.flatnonzero(self.kept)
        if len(left) < count:
            raise InputError(
                f"train_queries is {count:,}; allowed: up to {len(left):,}, the queries that have "
                "a relevant passage and negatives, or 0 for all"
            )
        shares = np.array([stable_share(ids[query]) for query in left])
        beyond = np.zeros(len(self.kept), dtype=bool)
        beyond[left[np.argsort(shares)[count:]]] = True
        self._leave_out("left out beyond train_queries", beyond)

    def counts(self) -> dict[str, int]:
        """Return the non-zero numbers of queries left out and of negatives removed, by reason."""
        counts = {reason: int(which.sum()) for reason, which in self.left_out.items()}
        counts |= {
            reason: int(numbers[self.kept].sum()) for reason, numbers in self.removed.items()
        }
        return {reason: count for reason, count in counts.items() if count}

    def example(self, reason: str) -> int | None:
        """Return the first query that was left out for a reason."""
        which = self.left_out.get(reason, np.empty(0, bool))
        return int(np.argmax(which)) if which.any() else None

    def _leave_out(self, reason: str, which: np.ndarray) -> None:
        """Leave out queries; a query that is already left out keeps its first reason."""
        self.left_out[reason] = which & self.kept
        self.kept &= ~which

    def _mine(self) -> np.ndarray:
        """Mine each query's best passages without barred texts; return the copies' number, [Q]."""
        negatives = []
        copies = np.zeros(len(self.run), dtype=np.int64)
        for query in range(len(self.run)):
            passages = self.run.ranked(query)[0][: self.depth]
            barred = self.barred[query]
            same_text = np.isin(self.texts[passages], self.texts[barred])
            copies[query] = np.count_nonzero(same_text & ~np.isin(passages, barred))
            negatives.append(passages[~same_text])
        self.negatives = Ragged.of(negatives, np.int32)
        return copies


def _by_query(qrels: pd.DataFrame, queries: int) -> Ragged:
    """Group judged passages by query; the qrels are sorted by query."""
    lengths = np.bincount(qrels["query"], minlength=queries)
    return Ragged(qrels["passage"].to_numpy(np.int32), starts_of(lengths))


def _ranked(lists: Ragged, run: Run) -> Ragged:
    """Keep only the passages of each list that the run ranks for the same query."""
    kept = [np.isin(lists[query], run.ranked(query)[0]) for query in range(len(run))]
    return lists.keep(np.concatenate([np.empty(0, bool), *kept]))
