"""Compare search on the device with the CPU's, bit by bit, and reranking with float32."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.gpu.results import Row
from benchmarks.gpu.steps import Run, attempt

ALIKE = 0.99  # rank correlation of the reranked passages of a query
SORTED = 5  # queries whose passages are sorted, too


def rows(here: Run) -> Iterator[Row]:
    """Run the search and the reranking, and compare each with its reference."""
    if here.group.first:  # a search is one process's
        yield from attempt(here, "search by faiss", _search)
        yield from attempt(here, "reranked run", _reranked)


def _search(here: Run) -> Iterator[Row]:
    import faiss

    from cdmae.retrieval.search import search

    sizes = here.sizes
    draw = np.random.default_rng(1)
    passages = draw.standard_normal((sizes.vectors, sizes.plan.width), np.float32)
    passages[-sizes.vectors // 10 :] = passages[: sizes.vectors // 10]  # ties
    queries = draw.standard_normal((sizes.asked, sizes.plan.width), np.float32)
    runs = {}
    by_gpu = hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0
    for device in ("cpu", *([str(here.device)] if by_gpu else [])):
        begun = time.perf_counter()
        runs[device] = search(
            queries, [passages], sizes.depth, threads=torch.get_num_threads(), device=device
        )
        seconds = time.perf_counter() - begun
        note = (
            f"{len(queries):,} x {len(passages):,} x {sizes.plan.width}, "
            f"depth {sizes.depth:,}; {seconds:.3g} s"
        )
        yield Row(f"search on {device}", sizes.asked / seconds, "queries/s", note=note)
    reference = runs.pop("cpu")
    best = np.argsort(-(queries[:SORTED] @ passages.T), axis=1, kind="stable")[:, : sizes.depth]
    share = np.mean(
        [np.isin(best[query], reference.ranked(query)[0]).mean() for query in range(SORTED)]
    )
    yield Row(
        "the CPU's search equals a full sort", 100 * share, "%", "at least 99.9", share >= 0.999
    )
    if not by_gpu:
        yield Row("search on a GPU", note="not here: faiss-gpu (the CPU searches instead)")
    for device, run in runs.items():
        same = (reference.passages == run.passages).mean(), (reference.scores == run.scores).mean()
        note = (
            f"{100 * same[0]:.4f} % of the passages, "
            f"{100 * same[1]:.4f} % of the scores to the last bit"
        )
        yield Row(
            f"the run of {device} is that of the CPU",
            str(min(same) == 1),
            "",
            "all",
            min(same) == 1,
            note,
        )


def _reranked(here: Run) -> Iterator[Row]:
    """Compare the device's float32 and bfloat16 rankings with the CPU's float32 ranking."""
    from benchmarks import finetuning
    from cdmae.finetuning import reranker
    from cdmae.retrieval import vectors
    from cdmae.training import setup

    listed = max(5, min(100, here.sizes.encoded // 8))
    network = finetuning.cross_encoder("tiny")
    pairs = finetuning.pairs("tiny", 8 * listed)
    orders = []
    for device, precision in (
        (torch.device("cpu"), "fp32"),
        (here.device, "fp32"),
        (here.device, "bf16"),
    ):
        budget = vectors.BUDGET[device.type]
        scores = reranker.score_all(network.to(device), pairs, precision, budget, device)
        orders.append(scores.reshape(8, listed).argsort(1).argsort(1))
    for precision, order in zip(("fp32", "bf16"), orders[1:], strict=True):
        alike = float(
            np.mean([np.corrcoef(*ranks)[0, 1] for ranks in zip(order, orders[0], strict=True)])
        )
        scoring = setup.scoring_precision("auto", here.device)
        note = f"8 runs of {listed}; what scores here is {scoring}"
        name = f"rank correlation, {precision} here with the CPU's fp32"
        yield Row(name, alike, "", f"at least {ALIKE}", alike >= ALIKE, note)
