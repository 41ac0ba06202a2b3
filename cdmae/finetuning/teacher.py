"""Teachers: a run with scores for every passage that a student draws (section 3.4, stage 3).

Missing or uninformative scores are reported before training begins, not hours later.

Shapes: `B` queries of a batch, `N` passages per query, `E'` examples that are looked up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import entr, expit, softmax

from cdmae.config.stages import Retriever, Stage
from cdmae.errors import InputError
from cdmae.finetuning.groups import Chances, Examples
from cdmae.runs import Run, read_run
from cdmae.training.state import Share, unshared

UNSURE = 0.85  # scores with a larger share of the entropy of guessing are uninformative


@dataclass(frozen=True)
class Teacher:
    """A run with scores for every passage that the student draws, and the name of its file.

    The run was either made by a reranker for the student, or it is another system's search. A
    search limits the student's draws to the passages that it ranks.
    """

    run: Run
    name: str

    @classmethod
    def read(cls, path: Path, share: Share = unshared) -> Teacher:
        """Read an existing run, once for all processes; raises `InputError` if it is missing."""
        if not path.exists():
            raise InputError(
                f"the teacher's scores {path} do not exist; compute them or remove the teacher"
            )
        return cls(Run(**share("teacher", lambda: vars(read_run(path)))), str(path))

    def scores(self, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """Return the scores of each query's group: [B], [B, N] -> float32 [B, N].

        Raises `InputError` if a score is missing.
        """
        scores = np.empty(passages.shape, dtype=np.float32)
        for row, query in enumerate(queries):
            known, values = self.run.ranked(query)
            scores[row] = pd.Series(values, index=known).reindex(passages[row])
        missing = np.argwhere(np.isnan(scores))
        if len(missing):
            row, column = missing[0]
            raise InputError(
                f"the teacher's scores {self.name} lack passage {passages[row, column]} of query "
                f"{queries[row]}; they were made with other negatives, depth, group, "
                "random_negatives, epochs or seed: delete the file"
            )
        return scores

    def balance(self, bins: int) -> Chances:
        """Return the probabilities of a query's negatives for `Examples.draw`.

        Every bin of the margins between the positive and a negative is equally likely (TAS-B,
        Hofstätter et al. 2021).
        """

        def chances(query: int, positive: int, negatives: np.ndarray) -> np.ndarray:
            passages = np.concatenate([[positive], negatives])
            scores = self.scores(np.array([query]), passages[None])[0].astype(np.float64)
            return balanced(scores[0] - scores[1:], bins)

        return chances

    def preferred(self, queries: np.ndarray, passages: np.ndarray, stage: Retriever) -> np.ndarray:
        """Return which passages of each group are false negatives by `stage.denoise`: bool [B, N].

        RocketQA (Qu et al. 2021) compares the probability that a passage is relevant,
        which a list-wise teacher does not have. Here it is the probability that the teacher prefers
        it to the positive. The positive is never marked.
        """
        scores = self.scores(queries, passages).astype(np.float64) / stage.teacher_temperature
        found = expit(scores - scores[:, :1]) > stage.denoise
        found[:, 0] = False
        return found

    def check_worth(self, examples: Examples, stage: Stage, name: str) -> None:
        """Raise `InputError` if a student would learn almost only from uninformative scores.

        With an `alpha`, the weight of the contrastive loss (equation 11), below 1, such a student
        collapses and becomes worse than its initial weights.
        """
        if stage.alpha >= 1:
            return
        # 1,000 evenly spaced examples
        rows = np.linspace(0, len(examples) - 1, min(len(examples), 1000)).astype(np.int64)
        drawn = examples.draw(rows, 0)
        scores = self.scores(examples.queries[rows], drawn).astype(np.float64)  # [E', N]
        shares = softmax(scores / stage.teacher_temperature, axis=1)
        entropy = entr(shares).sum(1).mean() / math.log(scores.shape[1])
        if entropy >= UNSURE:
            raise InputError(
                f"alpha of {name} is {stage.alpha:g}, and its teacher's scores have {entropy:.0%} "
                "of the entropy of guessing: they carry too little information; expected an alpha "
                "of 1 or more, a smaller teacher_temperature (now "
                f"{stage.teacher_temperature:g}), or a better teacher"
            )


def balanced(margins: np.ndarray, bins: int) -> np.ndarray:
    """Return the probabilities with which every bin of margins is equally likely, float64 [M].

    The bins divide the range of the margins [M] into equal widths; those without a negative do not
    count. Negatives in the same bin are equally likely.
    """
    lowest = margins.min()
    width = (margins.max() - lowest) / bins
    if not width:
        return np.full(len(margins), 1 / len(margins))
    bin_of = np.minimum((margins - lowest) // width, bins - 1).astype(np.int64)
    sizes = np.bincount(bin_of)
    return 1 / (sizes[bin_of] * np.count_nonzero(sizes))
