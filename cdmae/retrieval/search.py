"""Exact search among vectors of any kind, for the queries of splits and of users."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from cdmae.collections import check_rows
from cdmae.errors import InputError
from cdmae.retrieval import asking, impacts, kinds, ranking, targets
from cdmae.retrieval.asking import Question, encode_question
from cdmae.retrieval.impacts import Impacts
from cdmae.retrieval.shards import Shards, Vectors
from cdmae.retrieval.vectors import keep_vectors, read_vectors
from cdmae.runs import Run, read_run
from cdmae.training import setup


def search(
    queries: Vectors,
    shards: Shards | Impacts,
    depth: int,
    *,
    candidates: Run | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> Run:
    """Find the `depth` passages with the greatest score for each query, ties by row.

    queries: [Q, D]. shards: arrays [p, D], which may be memory-mapped, computed when read, or in
    memory; or Lucene's index of sparse vectors. Rows are numbered across shards. Every query gets
    min(depth, P) passages; with sparse vectors, only passages with a product above 0. Raises
    `InputError` for vectors that are not finite or differ in width.

    candidates: for multi-vectors, a run with the passages to score for each query; None: all.
    """
    if depth < 1:
        raise InputError(f"the search depth is {depth}; expected from 1")
    widths = [shards.width] if isinstance(shards, Impacts) else [s.shape[1] for s in shards]
    for width in widths:
        if width != queries.shape[1]:
            raise InputError(
                f"the passage vectors have {width} dimensions and the query vectors "
                f"{queries.shape[1]}: they come from different models; encode both with one model"
            )
    if isinstance(shards, Impacts):
        return impacts.search(queries, shards, depth, threads)
    check_rows(sum(map(len, shards)), "passages")
    return kinds.of(queries).search(
        queries, shards, depth, candidates=candidates, threads=threads, device=device
    )


def write_runs(
    *,
    encoder: dict[str, Any],
    model: Path | None = None,
    vectors: list[Path],
    tokens: list[Path],
    collections: list[Path],
    splits: list[str],
    lengths: list[int],
    outputs: list[Path],
    depth: int,
    candidates: list[Path],
    candidates_depth: int = 0,
    threads: int = 1,
) -> None:
    """Search each collection for the queries of its split; write one run per output.

    encoder: the settings of the system that encodes the texts, with `encoded_by`
    (`retrieval.asking.encoder`). model: its folder, if it was trained here. vectors: one folder per
    distinct collection; without them, passages are encoded during the search, from `tokens` or
    texts, and their vectors are not kept. lengths: the length at which texts of each collection are
    cut; 0: the model's own. candidates: one run per output with the passages to score; none: all
    passages are scored.
    """
    setup.set_up(threads)
    system = encoder | ({"model": model} if model else {})
    distinct = list(dict.fromkeys(collections))
    folders = dict(zip(distinct, vectors or tokens or distinct, strict=True))
    loaded = cache(asking.load_once)  # all splits have one model

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        collection = collections[number]
        encoding = asking.encoder(system, lengths[number], threads, loaded)
        queries = [encoding.queries(asked) for asked in texts]
        if vectors:
            shards = read_vectors(folders[collection])
        else:
            shards = encoding.passages(folders[collection])
        among = None
        if candidates:
            pairs = zip(candidates, collections, strict=True)
            runs = [read_run(run) for run, other in pairs if other == collection]
            among = ranking.joined([run.best(candidates_depth) for run in runs])
        return search(
            kinds.of(queries[0]).joined(queries),
            shards,
            depth,
            candidates=among,
            threads=threads,
            device=str(setup.device()),
        )

    targets.search(collections, splits, outputs, depth, find)


def answer(system: dict[str, Any], question: Question) -> Run:
    """Search for a user's query; `system` has an encoder and the `vectors` of passages."""
    query = encode_question(system, question)
    shards = question.load(keep_vectors, system["vectors"])
    device = str(setup.device())
    candidates = None
    if question.parts:
        candidates = question.parts[0].best(system["candidates_depth"])
    return search(
        query,
        shards,
        question.depth,
        candidates=candidates,
        threads=question.threads,
        device=device,
    )
