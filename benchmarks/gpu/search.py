"""Search on the device beside the CPU's, bit by bit; a run reranked in the device's precision beside float32."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.gpu.results import Row, Run, attempt

LIKE = 0.99  # rank correlation of the reranked passages of a query


def rows(run: Run) -> Iterator[Row]:
    """Search, rerank."""
    if run.group.first:  # a search is one process's
        yield from attempt(run, "search by faiss", _search)
        yield from attempt(run, "reranked run", _reranked)


def _search(run: Run) -> Iterator[Row]:
    import faiss

    from cdmae.retrieval.search import search

    sizes, draw = run.sizes, np.random.default_rng(1)
    shape = sizes.vectors, sizes.plan.width
    passages = draw.standard_normal(shape, np.float32)
    passages[-sizes.vectors // 10 :] = passages[: sizes.vectors // 10]  # ties
    queries = draw.standard_normal((sizes.asked, shape[1]), np.float32)
    here = bool(getattr(faiss, "get_num_gpus", int)()) and hasattr(faiss, "StandardGpuResources")
    if run.on_gpu and not here:
        yield Row("search by faiss on the GPU", note="not here: faiss-gpu (the CPU searches in its place)")
    runs, devices = [], dict.fromkeys(("cpu", str(run.device) if here else "cpu"))
    for device in devices:
        begun = time.perf_counter()
        runs.append(search(queries, [passages], sizes.depth, threads=torch.get_num_threads(), device=device))
        seconds = time.perf_counter() - begun
        note = (
            f"{sizes.asked:,} queries, {sizes.vectors:,} x {shape[1]} passages, depth {sizes.depth:,}; {seconds:.3g} s"
        )
        yield Row(f"search on {device}", sizes.asked / seconds, "queries/s", note=note)
    known = runs[0]
    few = slice(0, 5)
    sure = np.argsort(-(queries[few] @ passages.T), axis=1, kind="stable")[:, : sizes.depth]
    share = np.mean([len(np.intersect1d(known.ranked(row)[0], best)) / len(best) for row, best in enumerate(sure)])
    yield Row("the CPU's search finds what a sort finds", 100 * share, "%", "at least 99.9", share >= 0.999)
    for device, other in list(zip(devices, runs, strict=True))[1:]:
        same = (known.passages == other.passages).mean(), (known.scores == other.scores).mean()
        note = f"{100 * same[0]:.4f} % of the passages, {100 * same[1]:.4f} % of the scores to the last bit"
        yield Row(f"the run of {device} is that of the CPU", str(min(same) == 1), "", "all", min(same) == 1, note)


def _reranked(run: Run) -> Iterator[Row]:
    """Compare orders by the precision that scores here, by float32 here, and by float32 on the CPU."""
    from benchmarks import finetuning
    from cdmae.finetuning import reranker
    from cdmae.retrieval import vectors
    from cdmae.training import setup

    listed = max(5, min(100, run.sizes.encoded // 8))
    pairs, cpu = finetuning.pairs("tiny", 8 * listed), torch.device("cpu")
    network = finetuning.cross_encoder("tiny")
    scores = {}
    for name, device, precision in (
        ("float32 on the CPU", cpu, "fp32"),
        ("float32 here", run.device, "fp32"),
        ("bfloat16 here", run.device, "bf16"),
    ):
        budget = vectors.BUDGET[device.type]
        scores[name] = reranker.score_all(network.to(device), pairs, precision, budget, device).reshape(8, listed)
    usual = setup.scoring_precision("auto", run.device)
    known = scores.pop("float32 on the CPU").argsort(1).argsort(1)
    for name, values in scores.items():
        ranks = values.argsort(1).argsort(1)
        like = float(np.mean([np.corrcoef(one, other)[0, 1] for one, other in zip(ranks, known, strict=True)]))
        note = f"8 runs of {listed}; what scores here is {usual}"
        yield Row(f"rank correlation, {name} with the CPU's float32", like, "", f"at least {LIKE}", like >= LIKE, note)
