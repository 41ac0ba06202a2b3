"""Choose the function of `cdmae.plan.work` that counts a job's work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cdmae.plan import work
from cdmae.plan.work import Work

if TYPE_CHECKING:
    from cdmae.plan.planned import Job, Planned

RULES = (
    work.collection,
    work.expansions,
    work.keywords,
    work.tokenizer,
    work.tokens,
    work.ngrams,
    work.importance,
    work.pretrain,
    work.untrained,
    work.train_retriever,
    work.train_reranker,
    work.teacher,
    work.index_bm25,
    work.search_bm25,
    work.search,
    work.search_feedback,
    work.vectors,
    work.vectors_head,
    work.sparsity,
    work.rerank,
    work.measures,
    work.weights,
    work.fuse,
    work.report,
)
WORK: dict[str, Callable[..., Work]] = {
    **{rule.__name__: rule for rule in RULES},
    "mine_bm25": work.search_bm25,
    "mine": work.search,
    "mine_external": work.search,
    "mine_fusion": work.fuse,
    "mine_feedback": work.search_feedback,
    "search_external": work.search,
    "vectors_external": work.vectors,
}


def count(planned: Planned, job: Job) -> Work:
    """Count the work of a job."""
    if job.rule not in WORK:
        return Work()
    return WORK[job.rule](planned, *job.name.split("/"))
