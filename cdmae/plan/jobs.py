"""Choose the function of `cdmae.plan.work` that counts a job's work; divide the work of parts.

A rule's job is divided with ``--set-scatter shards=N``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cdmae.plan import work
from cdmae.plan.work import Work
from cdmae.ranges import Part

if TYPE_CHECKING:
    from cdmae.plan.planned import Job, Planned

# units that are divided among parts that are ranges of the passages, or of the queries
BY_PASSAGES = ("passage", "piece", "whole piece", "byte", "word", "count", "component")
BY_QUERIES = ("query", "scanned passage", "hit", "pair")


def part_of(
    rule: Callable[..., Work], divided: tuple[str, ...] = BY_PASSAGES
) -> Callable[..., Work]:
    """Return the work of a parallel job; its last wildcard is the part, such as 3-of-7."""

    def part(planned: Planned, *wildcards: str) -> Work:
        *whole, name = wildcards
        parts = Part.read(name).parts
        counted = rule(planned, *whole)
        units = {
            unit: number / parts if unit in divided else number
            for unit, number in counted.units.items()
        }
        return Work(counted.flops / parts, units)

    return part


def joined_runs(planned: Planned, name: str, *mined: str) -> Work:
    """Merge the runs that the parallel jobs of a search wrote."""
    return Work(units={"hit": work.searched(planned, name, mined)["hit"]})


def joined_scores(planned: Planned, student: str) -> Work:
    """Merge the teacher's scores that the parallel jobs wrote."""
    return Work(units={"pair": work.teacher(planned, student).units["pair"]})


def ngrams_of_order(planned: Planned, entry: str, start: str, name: str, order: str) -> Work:
    """List or count the n-grams of one order."""
    return Work(units={"word": planned.size(name).all_words})


def ngram_vocabulary(planned: Planned, entry: str, start: str, name: str) -> Work:
    """Merge the distinct words of all shards into one vocabulary."""
    return Work(units={"distinct word": work.TYPES * math.sqrt(planned.size(name).all_words)})


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
    "tokens_part": part_of(work.tokens),
    "tokens_joined": work.tokens,
    "ngram_words": part_of(work.ngrams),
    "ngram_vocabulary": ngram_vocabulary,
    "ngram_keys": part_of(ngrams_of_order),
    "ngram_counts": part_of(ngrams_of_order),
    "ngrams_joined": work.ngrams,
    "vectors_part": part_of(work.vectors),
    "search_part": part_of(work.search),
    "mine_part": part_of(work.search),
    "search_joined": joined_runs,
    "mine_joined": joined_runs,
    "search_bm25_part": part_of(work.search_bm25, BY_QUERIES),
    "mine_bm25_part": part_of(work.search_bm25, BY_QUERIES),
    "search_bm25_joined": joined_runs,
    "mine_bm25_joined": joined_runs,
    "rerank_part": part_of(work.rerank, BY_QUERIES),
    "rerank_joined": joined_runs,
    "teacher_part": part_of(work.teacher, BY_QUERIES),
    "teacher_joined": joined_scores,
}


def in_float32(planned: Planned, job: Job) -> bool:
    """Return whether a job computes its network in float32 on a GPU.

    So do trainings with `precision: fp32` and their models, and sentence-transformers.
    """
    name = job.name.split("/")[0]
    if job.rule == "expansions":
        return False
    if job.rule == "pretrain":
        return planned.config.encoders[name].precision == "fp32"
    if job.rule in ("teacher", "teacher_part"):
        name = planned.config.systems[name].teacher
    stage = work.stage_of(planned, name)
    return stage is None or stage.precision == "fp32"


def count(planned: Planned, job: Job) -> Work:
    """Count the work of a job."""
    if job.rule not in WORK:
        return Work()
    return WORK[job.rule](planned, *job.name.split("/"))
