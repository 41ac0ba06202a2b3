"""Labels of training queries without judgments by a teacher (RocketQA, Qu et al. 2021, section 3).

RocketQA's cross-encoder gives each passage a probability of being relevant, and labels a passage
with 0.9 or more as relevant. A list-wise teacher has no such probability. Here it is the
probability of the passage among the query's mined passages, a softmax of the teacher's scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax

from cdmae.runs import Run, read_run


@dataclass(frozen=True)
class Labels:
    """A teacher's run, and the probability from which it labels a passage as relevant.

    temperature: the number that divides its scores.
    """

    teacher: Path
    share: float
    temperature: float

    def qrels(self, mined: Run, depth: int) -> pd.DataFrame:
        """Judge the best `depth` mined passages of each query: a frame (query, passage, grade).

        It lists the relevant passages only, with grade 1. Passages without a score of the teacher
        are not relevant.
        """
        taught = read_run(self.teacher)
        rows = []
        for query in range(min(len(mined), len(taught))):
            passages, scores = taught.ranked(query)
            among = np.isin(passages, mined.ranked(query)[0][:depth])
            if among.any():
                shares = softmax(scores[among].astype(np.float64) / self.temperature)
                relevant = np.sort(passages[among][shares >= self.share])
                rows += [(query, int(passage), 1) for passage in relevant]
        return pd.DataFrame(rows, columns=["query", "passage", "grade"], dtype=np.int64)
