"""Topics of training queries, for batches of similar queries (TAS-B, Hofstätter et al. 2021).

In-batch negatives of the same topic are harder to tell from a query's positive. The initial
weights encode the queries, and the topics are clusters of these vectors. TAS-B uses the vectors of
a trained retriever; so does a system that continues from one (`after`). The other half of TAS-B,
balancing the teacher's margins between a positive and its negatives, is `margin_bins`
(`cdmae.finetuning.teacher.Teacher.balance`).

Shapes: `E` examples, `D` dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cdmae.config.stages import Dense
from cdmae.errors import InputError
from cdmae.finetuning import scoring
from cdmae.finetuning.objectives import Batch
from cdmae.models import sequences
from cdmae.tokens.corpus import Tokens
from cdmae.training import setup

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model

ROUNDS = 20  # of k-means


def of_queries(
    model: Model, queries: Tokens, rows: np.ndarray, stage: Dense, seed: int, collection: str
) -> np.ndarray:
    """Return a topic per example, int64 [E], from 0 to `stage.topics` - 1.

    rows: int32 [E], the examples' queries. The result depends on the initial weights and the seed.
    """
    if stage.topics > len(rows):
        raise InputError(
            f"topics is {stage.topics}; expected up to {len(rows)}, the training queries of "
            f"{collection}"
        )
    model.network.to(setup.device())
    batch = Batch(sequences.texts(model, "query", queries, rows), len(rows))
    vectors = scoring.encoded(model, batch, stage.chunk * stage.passage_length).cpu().numpy()
    return clusters(vectors, stage.topics, setup.seed_of(seed, "topics"))


def clusters(vectors: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Divide vectors [E, D] into clusters by k-means; return the cluster of each, int64 [E].

    It runs in one thread, because a training that resumes must find the same clusters.
    """
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    means = faiss.Kmeans(
        vectors.shape[1],
        number,
        niter=ROUNDS,
        seed=seed % 2**31,
        min_points_per_centroid=1,
        max_points_per_centroid=len(vectors),
    )
    means.train(vectors)
    found = means.assign(vectors)[1].astype(np.int64)
    faiss.omp_set_num_threads(before)
    return found
