"""Select passages for training queries: a run minus the qrels, then filters (section 3.4).

Filters, in this order:

1. `mined`: keeps the best passages of the run. It removes relevant passages, passages that the
   qrels exclude (BRIGHT's grade of -100), and copies of either.
2. `limit_by_margin`: removes passages that the run scores nearly as high as the relevant passage.
3. `limit_to_ranked`: keeps only passages that a teacher's run ranks.
4. `limit_to_queries`: keeps some of the queries that are left.

Filters join tables of pairs of a query and a passage. A pair has one number as its key (`_keys`).

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

    run: Run  # its best passages, up to the depth
    texts: np.ndarray  # int64 [P], equal for passages of equal text
    positives: Ragged
    barred: Ragged  # never a negative: relevant, excluded, or above the margin
    negatives: Ragged  # best first
    kept: np.ndarray  # bool [Q]
    left_out: dict[str, np.ndarray] = field(default_factory=dict)  # by reason, bool [Q]
    # removed negatives per query, int64 [Q], by reason
    removed: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def mined(cls, run: Run, qrels: pd.DataFrame, texts: np.ndarray, depth: int) -> Selection:
        """Mine the best `depth` passages of each query of a run.

        qrels: a sorted frame (query, passage, grade) of row numbers; grades from 1 are relevant.
        """
        known = qrels[qrels["passage"] < len(texts)]
        relevant = known["grade"] > 0
        positives = _by_query(known[relevant], len(run))
        barred = _by_query(known[relevant | (known["grade"] == EXCLUDED)], len(run))
        best = run.best(depth)
        listed = Ragged(best.passages, best.starts)
        everyone = np.ones(len(run), dtype=bool)
        selection = cls(best, texts, positives, barred, listed, everyone)
        selection._leave_out("left out without a relevant passage", positives.lengths == 0)
        same_text = selection._mine()
        # such as a query that shares no word with another passage, for BM25
        alone = selection.negatives.lengths == 0
        selection.removed["with random negatives only, because the run has no others"] = alone
        copies = same_text & ~_among(listed, barred)
        count = np.bincount(_rows(best.starts)[copies], minlength=len(run))
        selection.removed["negatives removed as copies of a judged passage"] = count
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
        queries = _rows(self.run.starts)
        mined = Ragged(self.run.passages, self.run.starts)
        relevant = _among(mined, self.positives)
        best = np.full(len(self.run), -np.inf)
        np.maximum.at(best, queries[relevant], self.run.scores[relevant])
        wrong = np.flatnonzero((best > -np.inf) & (best <= 0))
        if len(wrong):
            raise InputError(
                f"margin is {margin:g}, a share of the relevant passage's score, but this "
                f"score is {best[wrong[0]]:g} for query {wrong[0]} of the run; expected a margin "
                "of 0, or negatives from a system whose scores are above 0, such as BM25 or cosine "
                "similarity"
            )
        highest = ((1 - margin) * best).astype(np.float32)
        suspects = mined.keep(self.run.scores > highest[queries])
        self.barred = _union(self.barred, suspects)
        before = self.negatives.lengths
        self._mine()
        left = self.negatives.lengths
        self.removed["mined negatives removed by the margin"] = before - left
        self.removed["mined negatives left by it"] = left
        self.removed["with random negatives only, because the margin removed all mined ones"] = (
            before > 0
        ) & (left == 0)

    def limit_to_ranked(self, teacher: Run, negatives: int) -> None:
        """Keep only passages that a teacher's run ranks, since the run scores no other passages.

        A query is omitted if no relevant passage or fewer than `negatives` negatives remain.
        """
        before = self.negatives.lengths
        ranked = Ragged(teacher.passages, teacher.starts)
        self.positives = self.positives.keep(_among(self.positives, ranked))
        self.negatives = self.negatives.keep(_among(self.negatives, ranked))
        left = self.negatives.lengths
        self._leave_out(
            "left out because the teacher ranks no judged passage", self.positives.lengths == 0
        )
        self._leave_out("left out because the teacher ranks too few negatives", left < negatives)
        self.removed["mined negatives removed as not ranked by the teacher"] = before - left

    def limit_to_queries(self, ids: pd.Series, count: int) -> None:
        """Keep `count` of the queries that are left; raise `InputError` if there are fewer.

        ids: the ids of all Q queries. The choice depends only on them, so a smaller number chooses
        some of the queries of a larger number.
        """
        left = np.flatnonzero(self.kept)
        if len(left) < count:
            raise InputError(
                f"train_queries is {count:,}; expected up to {len(left):,}, the queries that have "
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
        """Mine the passages without a barred text; return which of the run have one."""
        mined = Ragged(self.run.passages, self.run.starts)
        texts = Ragged(self.texts[mined.values], mined.starts)
        barred = Ragged(self.texts[self.barred.values], self.barred.starts)
        same_text = _among(texts, barred)
        self.negatives = mined.keep(~same_text)
        return same_text


# --- pairs of a query and a passage ---------------------------------------------------------------


def _rows(starts: np.ndarray) -> np.ndarray:
    """Return the query of each value of lists with these offsets."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _keys(lists: Ragged) -> np.ndarray:
    """Return a number for each value of each list: int64, equal for equal pairs."""
    return (_rows(lists.starts) << 32) | lists.values


def _among(lists: Ragged, others: Ragged) -> np.ndarray:
    """Return which values of each list are in the other list of the same query."""
    known = np.append(np.sort(_keys(others)), np.iinfo(np.int64).max)
    keys = _keys(lists)
    return known[np.searchsorted(known, keys)] == keys


def _union(lists: Ragged, others: Ragged) -> Ragged:
    """Return the distinct values of both lists of each query, in ascending order."""
    keys = np.union1d(_keys(lists), _keys(others))
    lengths = np.bincount(keys >> 32, minlength=len(lists))
    return Ragged((keys & 0xFFFFFFFF).astype(np.int32), starts_of(lengths))


def _by_query(qrels: pd.DataFrame, queries: int) -> Ragged:
    """Group judged passages by query; the qrels are sorted by query."""
    lengths = np.bincount(qrels["query"], minlength=queries)
    return Ragged(qrels["passage"].to_numpy(np.int32), starts_of(lengths))
