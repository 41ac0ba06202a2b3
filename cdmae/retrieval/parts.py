"""Searching in parts: each job searches a range of the passages, and one job merges the runs.

A score depends only on its query and passage (`cdmae.retrieval.search`). The merged run is
therefore bit-identical to the run of a single search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdmae.arrays import open_parquet, read_batches
from cdmae.errors import InputError
from cdmae.files import complete, link
from cdmae.ranges import Part
from cdmae.retrieval import dual, multivectors
from cdmae.retrieval.impacts import Impacts
from cdmae.retrieval.search import Shards
from cdmae.runs import QUERIES_AT_ONCE, QUERY_GROUP, RUN, Run


def part_of(shards: Shards | Impacts, part: Part) -> tuple[Shards | Impacts, int]:
    """Return one part's shards of vectors, and the row of the part's first passage."""
    if isinstance(shards, Impacts):
        if part.parts > 1:
            raise InputError(
                f"{shards.folder} is an index, which cannot be searched in parts; allowed: engine: "
                "exact, or a run without --set-scatter"
            )
        return shards, 0
    first, last = part.of(len(shards))
    return shards[first:last], sum(map(len, shards[:first]))


def shifted(run: Run, first: int) -> Run:
    """Convert the rows of a run over a range of passages to rows of the collection."""
    return replace(run, passages=(run.passages + np.int64(first)).astype(np.int32))


def merge_runs(runs: list[Path], outputs: list[Path], depth: int) -> None:
    """Merge the runs of all parts: the best `depth` passages per query, ties by row.

    runs: all runs of the first part, in the order of `outputs`, then all runs of the second part,
    and so on. Only one block of queries is in memory at a time.
    """
    for number, output in enumerate(outputs):
        _merge(runs[number :: len(outputs)], output, depth)


def _merge(parts: Sequence[Path], output: Path, depth: int) -> None:
    files = [open_parquet(path, RUN) for path in parts]
    if len({file.metadata.num_rows for file in files}) != 1:
        raise InputError(
            f"the parts of {output} have different numbers of queries; delete them and run again"
        )
    streams = [
        read_batches(file, path, QUERIES_AT_ONCE) for file, path in zip(files, parts, strict=True)
    ]
    with (
        complete(output) as aside,
        pq.ParquetWriter(aside, RUN, write_page_checksum=True) as writer,
    ):
        group = RUN.empty_table()
        for batches in zip(*streams, strict=True):
            merged = pa.Table.from_batches([_best(batches, depth)])
            group = pa.concat_tables([group, merged])
            if len(group) >= QUERY_GROUP:
                writer.write_table(group.combine_chunks())
                group = RUN.empty_table()
        if len(group):
            writer.write_table(group.combine_chunks())


def _best(batches: Sequence[pa.RecordBatch], depth: int) -> pa.RecordBatch:
    """Merge the lists of the same queries from several batches."""
    queries = np.concatenate(
        [
            np.repeat(np.arange(len(batch)), batch["passages"].value_lengths().to_numpy())
            for batch in batches
        ]
    )
    passages = np.concatenate([batch["passages"].flatten().to_numpy() for batch in batches])
    scores = np.concatenate([batch["scores"].flatten().to_numpy() for batch in batches])
    best = np.lexsort([passages, -scores, queries])
    lengths = np.bincount(queries, minlength=len(batches[0]))
    first = np.cumsum(lengths) - lengths
    ranks = np.arange(len(best)) - np.repeat(first, lengths)
    best = best[ranks < depth]
    starts = np.append(0, np.cumsum(np.minimum(lengths, depth))).astype(np.int32)
    columns = [
        pa.ListArray.from_arrays(pa.array(starts), pa.array(values[best])).cast(field.type)
        for values, field in zip((passages, scores), RUN, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RUN)


def join_vectors(output: Path, folders: list[Path]) -> None:
    """Combine the vectors of all parts in one folder, using hard links if possible."""
    with complete(output) as aside:
        aside.mkdir()
        for prefix in ("", multivectors.TOKENS, dual.DENSE):
            paths = [sorted(folder.glob(f"{prefix}[0-9]*")) for folder in folders]
            for number, path in enumerate(chain.from_iterable(paths)):
                link(path, aside / f"{prefix}{number:05d}{path.suffix}")
