"""Exact search among vectors of any kind, for the queries of splits and of users."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdmae.files import link_folder, write_json
from cdmae.log import Progress
from cdmae.retrieval import asking, impacts, kinds, sparsity
from cdmae.retrieval.asking import Question
from cdmae.retrieval.impacts import Impacts
from cdmae.retrieval.shards import Shards, Vectors
from cdmae.retrieval.targets import search as search_targets
from cdmae.retrieval.vectors import keep_vectors, pieces_of, read_vectors, write_vectors
from cdmae.runs import Run, Target, read_run
from cdmae.training import ranks, setup


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
    `InputError` for vectors that are not finite.

    candidates: for multi-vectors, a run with the passages to score for each query; None: all.
    """
    if isinstance(shards, Impacts):
        return impacts.search(queries, shards, depth, threads)
    return kinds.of(queries).search(
        queries, shards, depth, candidates=candidates, threads=threads, device=device
    )


def write_runs(
    *,
    encoder: dict[str, Any],
    model: Path | None = None,
    folders: list[Path],
    tokens: list[Path],
    mined: list[Path],
    lengths: dict[str, int],
    engine: str = "exact",
    k1: float = 10.0,
    b: float = 0.9,
    keep: bool = True,
    vectors: Path,
    targets: list[Target],
    depth: int,
    candidates_depth: int = 0,
    threads: int = 1,
    code: Mapping[str, str] | None = None,
) -> float:
    """Encode the passages of collections, and search them for the queries of their splits.

    folders: the distinct collections; tokens: a folder for each, or none for a system that reads
    texts. encoder: the settings of the system that encodes the texts, with `encoded_by`
    (`retrieval.asking.encoder`). model: its folder, if it was trained here. lengths: the length at
    which texts of a collection are cut, by its name; by default the model's own. engine: `exact` or
    as in `retrieval.impacts.add`. vectors: the folder for the vectors of each collection; without
    `keep`, they are deleted after the search. mined: folders of vectors from searches of the same
    system for training queries, which are linked instead of encoding a collection again. code: as
    in `retrieval.vectors.write_vectors`.

    targets: with the run whose best `candidates_depth` passages are scored, or without a run: all
    passages are scored. With several GPUs, a process per GPU encodes, and the first searches.
    Returns the seconds of the search alone.
    """
    known = {path.name: path for folder in mined for path in folder.iterdir() if path.is_dir()}
    shared: dict[tuple[Path, int], Path] = {}  # the vectors of each file of passages at a length
    vectors.mkdir(parents=True, exist_ok=True)
    with ranks.joined(setup.set_up(threads)) as group:
        for folder, source in zip(folders, tokens or folders, strict=True):
            length = lengths.get(folder.name, 0)
            passages = (folder / "passages.parquet").resolve(), length
            made = known.get(folder.name) or shared.get(passages)
            shared.setdefault(passages, vectors / folder.name)
            if not made:
                write_vectors(
                    encoder=encoder,
                    model=model,
                    source=source,
                    output=vectors / folder.name,
                    length=length,
                    threads=threads,
                    group=group,
                    code=code,
                )
                if group.first and engine != "exact":
                    impacts.add(vectors / folder.name, engine, k1, b, threads)
            elif group.first:
                link_folder(made, vectors / folder.name)
    if not group.first:
        return 0.0
    began = time.monotonic()
    system = encoder | ({"model": model} if model else {})
    weights = {}  # of the queries of each target, if they are sparse

    def find(target: Target, texts: list[str], depth: int) -> Run:
        name = target.collection
        encodes = asking.encoder(system, lengths.get(name, 0), threads)
        with Progress(len(texts), unit="queries", label="encode") as progress:
            queries = encodes.queries(texts, progress)
        if kinds.of(queries) is kinds.sparse:
            weights[target] = queries
        candidates = read_run(target.runs[0]).best(candidates_depth) if target.runs else None
        return search(
            queries,
            read_vectors(vectors / name),
            depth,
            candidates=candidates,
            threads=threads,
            device=str(setup.device()),
        )

    search_targets(targets, depth, find)
    seconds = time.monotonic() - began
    rows = []
    for target, queries in weights.items():
        found = sparsity.measure(queries, vectors / target.collection)
        rows.append({"collection": target.collection, "split": target.split, **found})
    if rows:
        write_json(targets[0].output.parent / "sparsity.json", rows)
    if not keep:
        for path in (*vectors.iterdir(), pieces_of(vectors)):
            shutil.rmtree(path)
    return seconds


def answer(system: dict[str, Any], question: Question) -> Run:
    """Search for a user's query; `system` has an encoder and the `vectors` of passages."""
    query = asking.encoder(system, question.length).queries([question.text])
    shards = asking.loaded(keep_vectors, system["vectors"])
    device = str(setup.device())
    candidates = None
    if question.parts:
        candidates = question.parts[0].best(system["candidates_depth"])
    return search(query, shards, question.depth, candidates=candidates, device=device)
