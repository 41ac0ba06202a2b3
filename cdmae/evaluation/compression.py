"""Measuring the loss of quality when a retriever's vectors are stored in fewer bytes.

Smaller vectors have fewer dimensions, or fewer bits per number. A prefix of a vector can be used as
a vector, especially if the training optimised prefixes (Matryoshka, Kusupati et al. 2022). Prefixes
of unit vectors, which are compared by cosine, are normalised again.

float32 unchanged; with all dimensions, the run is the evaluation's
float16  rounded
int8     255 equal steps between the extremes of a dimension in the collection
binary   the signs; the search by Hamming distance returns `RESCORED` times the depth as candidates,
         which are then ordered by their product with the float32 query

Queries remain float32, because only passages are stored. Q queries, P passages, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil
from pathlib import Path

import faiss
import numpy as np
import pandas as pd
from sentence_transformers.util.quantization import quantize_embeddings

from cdmae.collections.store import read_qrels, read_queries
from cdmae.errors import InputError
from cdmae.evaluation.compare import against_first
from cdmae.evaluation.measures import measure
from cdmae.retrieval import targets
from cdmae.retrieval.search import Shards, search
from cdmae.retrieval.vectors import Shard
from cdmae.runs import Run

BITS = {"float32": 32, "float16": 16, "int8": 8, "binary": 1}
RESCORED = 4  # as in the library's examples
UNIT = 1e-2  # tolerance of the norms of normalised vectors, wide enough for bfloat16


def compare_sizes(
    encode: Callable[[list[str]], np.ndarray],
    shards: Shards,
    collection: Path,
    split: str,
    name: str,
    depth: int,
    *,
    widths: Sequence[int] = (),
    threads: int = 1,
    device: str = "cpu",
) -> pd.DataFrame:
    """Measure every size of the vectors [p, D] in `shards`, and compare it with the full size.

    encode: a function from texts to vectors, float32 [Q, D]. name: the measure. widths: the numbers
    of dimensions to keep; by default D, D/2, D/4 and D/8. depth: the depth of the runs, if the
    measure has no cutoff. The first row is the full size. Columns: measure, dimensions, numbers,
    bytes (per passage), and the columns of `cdmae.evaluation.compare`.
    """
    full = shards[0].shape[1]
    for width in widths:
        if not 1 <= width <= full:
            raise InputError(
                f"the dimensions to keep are {width}; allowed: from 1 to {full}, "
                "the dimensions of the vectors"
            )
    queries = read_queries(collection, split)
    qrels = read_qrels(collection, split)
    pairs = targets.left_out(collection, split, queries)
    deeper = depth + int(np.bincount(pairs[:, 0]).max(initial=0))
    encoded = encode(queries["text"].tolist())
    if not widths:
        widths = [width for width in (full // 2, full // 4, full // 8) if width]
    rows = []
    values = []
    for width in dict.fromkeys([full, *widths]):
        cut = prefixes(shards, width)
        for numbers, bits in BITS.items():
            run = find(encoded[:, :width], cut, numbers, deeper, threads=threads, device=device)
            run = targets.without(run, pairs, depth) if deeper > depth else run
            values.append(measure(run, qrels, queries["query_id"], [name])["value"])
            rows.append(
                {
                    "measure": name,
                    "dimensions": width,
                    "numbers": numbers,
                    "bytes": ceil(width * bits / 8),
                }
            )
    tested = against_first(values)
    compared = [{**row, **numbers} for row, numbers in zip(rows, tested, strict=True)]
    return pd.DataFrame(compared).replace({np.nan: None})


def side_by_side(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join several systems' tables size by size; for a single system, no column names it."""
    if len(frames) == 1:
        return next(iter(frames.values()))
    joined = pd.concat(frames, names=["system", None]).reset_index(level="system")
    number = joined["system"].map(list(frames).index)
    # systems of different widths are compared at equal numbers of dimensions
    order = np.lexsort([number, -joined["numbers"].map(BITS), -joined["dimensions"]])
    return joined.iloc[order].reset_index(drop=True)


def prefixes(shards: Shards, width: int) -> Shards:
    """Keep the first `width` dimensions of vectors [p, D].

    If all vectors have norm 1, the results are normalised, too.
    """
    full = shards[0].shape[1]
    if width == full:
        return shards
    unit = all(np.allclose(np.linalg.norm(shard[:], axis=1), 1, atol=UNIT) for shard in shards)

    def make(shard: np.ndarray | Shard) -> np.ndarray:
        cut = np.asarray(shard[:], np.float32)[:, :width]
        if not unit:
            return cut
        lengths = np.linalg.norm(cut, axis=1, keepdims=True)
        return cut / np.maximum(lengths, np.finfo(np.float32).tiny)

    return [Shard((len(shard), width), partial(make, shard)) for shard in shards]


def find(
    queries: np.ndarray,
    shards: Shards,
    numbers: str,
    depth: int,
    *,
    threads: int = 1,
    device: str = "cpu",
) -> Run:
    """Find the `depth` best passages for queries, float32 [Q, D].

    numbers: the number format of the stored vectors [p, D], a key of `BITS`.
    """
    if numbers == "binary":
        return _by_signs(queries, shards, depth)
    read: Callable[[np.ndarray], np.ndarray] = np.asarray
    if numbers == "float16":
        read = partial(np.asarray, dtype=np.float16)
    if numbers == "int8":
        filled = [shard for shard in shards if len(shard)]
        low = np.min([np.min(shard[:], axis=0) for shard in filled], axis=0)
        high = np.max([np.max(shard[:], axis=0) for shard in filled], axis=0)
        read = partial(_in_steps, low=low, high=high)
    stored = [Shard(shard.shape, lambda shard=shard: read(shard[:])) for shard in shards]
    return search(queries, stored, depth, threads=threads, device=device)


def _in_steps(vectors: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Round each number of vectors [p, D] down to the nearest of its dimension's 255 steps."""
    codes = quantize_embeddings(vectors, "uint8", ranges=np.stack([low, high]))
    return low + codes * np.where(high > low, (high - low) / np.float32(255), 1)


def _by_signs(queries: np.ndarray, shards: Shards, depth: int) -> Run:
    """Find candidates by Hamming distance; order them by inner product of query and signs.

    Ties are ordered by passage row.
    """
    signs = np.concatenate([np.packbits(shard[:] > 0, axis=1) for shard in shards])
    index = faiss.IndexBinaryFlat(8 * signs.shape[1])
    index.add(signs)
    _, near = index.search(np.packbits(queries > 0, axis=1), min(RESCORED * depth, len(signs)))
    passages = []
    scores = []
    for query, rows in zip(np.asarray(queries, np.float64), np.sort(near, axis=1), strict=True):
        products = np.unpackbits(signs[rows], axis=1, count=len(query)) @ query
        best = np.argsort(-products, kind="stable")[:depth]
        passages.append(rows[best])
        scores.append(products[best])
    return Run.of(passages, scores)
