"""Searching the vectors of a system of any kind, and writing its runs."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from cdmae.errors import InputError
from cdmae.retrieval import asking, targets
from cdmae.retrieval.feedback import refined
from cdmae.retrieval.search import read_candidates, search
from cdmae.retrieval.vectors import joined, read_vectors
from cdmae.runs import Run, read_run
from cdmae.training import setup


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
    first: list[Path],
    feedback: dict[str, float] = {},  # noqa: B006 (never changed)
    threads: int = 1,
) -> None:
    """Search each collection for the queries of its split; write one run per output.

    encoder: the settings of the system that encodes the texts, with `encoded_by`
    (`retrieval.asking.encode`). model: its folder, if it was trained here. vectors: one folder per
    distinct collection; without them, passages are encoded during the search, from `tokens` or
    texts, and their vectors are not kept. lengths: the length at which texts of each collection are
    cut; 0: the model's own. candidates: one run per output with the passages to score; none: all
    passages are scored. first: one run per output of a first search, whose best passages move the
    vectors of the queries (`retrieval.feedback`), by the `depth`, `alpha` and `beta` in `feedback`.
    """
    setup.set_up(threads)
    system = encoder | ({"model": model} if model else {})
    distinct = list(dict.fromkeys(collections))
    folders = dict(zip(distinct, vectors or tokens or distinct, strict=True))
    loaded = cache(asking.load_once)  # all splits have one model

    def of(runs: list[Path], collection: Path) -> list[Path]:
        """List the runs on a collection."""
        pairs = zip(runs, collections, strict=bool(runs))
        return [run for run, other in pairs if other == collection]

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        collection, length = collections[number], lengths[number]
        queries = [asking.encode(system, asked, length, threads, loaded) for asked in texts]
        if vectors:
            shards = read_vectors(folders[collection])
        else:
            module = import_module(f"cdmae.retrieval.{encoder['encoded_by']}")
            shards = module.passages(system, folders[collection], length, threads)
        for index, path in enumerate(of(first, collection)):
            run = read_run(path)
            if len(run) != len(queries[index]):
                raise InputError(
                    f"{path} has {len(run)} queries instead of {len(queries[index])}; delete it "
                    "and run again"
                )
            queries[index] = refined(queries[index], shards, run, **feedback)
        return search(
            joined(queries),
            shards,
            depth,
            candidates=read_candidates(of(candidates, collection), candidates_depth),
            threads=threads,
            device=str(setup.device()),
        )

    targets.search(collections, splits, outputs, depth, find)
