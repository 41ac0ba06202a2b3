"""Store runs: the ranked passages of a system for every query of a split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdmae.files import complete

RUN = pa.schema([("passages", pa.list_(pa.int32())), ("scores", pa.list_(pa.float32()))])


@dataclass(frozen=True)
class Run:
    """Hold ranked passages: ``passages[starts[q]:starts[q + 1]]`` for query q, best first.

    Ties are ordered by passage row. passages: int32 [N]; scores: float32 [N]; starts: int64
    [Q + 1].
    """

    passages: np.ndarray
    scores: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        """Return the number of queries Q."""
        return len(self.starts) - 1

    @property
    def queries(self) -> np.ndarray:
        """Return the query of each ranked passage, int64 [N]."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def ranked(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the passages and the scores of one query, as views."""
        cut = slice(self.starts[query], self.starts[query + 1])
        return self.passages[cut], self.scores[cut]

    def best(self, depth: int) -> Run:
        """Return the best `depth` passages of each query."""
        lengths = np.diff(self.starts)
        ranks = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], lengths)
        kept = ranks < depth
        starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, depth))])
        return Run(self.passages[kept], self.scores[kept], starts)

    @classmethod
    def of(cls, passages: list[np.ndarray], scores: list[np.ndarray]) -> Run:
        """Join one array of passages and one array of scores per query."""
        starts = np.zeros(len(passages) + 1, dtype=np.int64)
        np.cumsum([len(ranked) for ranked in passages], out=starts[1:])
        all_passages = np.concatenate([np.empty(0, np.int32), *passages])
        all_scores = np.concatenate([np.empty(0, np.float32), *scores])
        return cls(
            all_passages.astype(np.int32, copy=False),
            all_scores.astype(np.float32, copy=False),
            starts,
        )


@dataclass(frozen=True)
class Target:
    """Name a split of a collection, with the files of a job about it.

    folder: the collection's. runs: of the systems that the job reads. output: the run that it
    writes.
    """

    collection: str
    split: str
    folder: Path | None = None
    runs: tuple[Path, ...] = ()
    output: Path | None = None


def write_run(path: Path | str, run: Run) -> None:
    """Write a run, one row per query."""
    starts = pa.array(run.starts, pa.int64())
    passages = pa.LargeListArray.from_arrays(starts, pa.array(run.passages))
    scores = pa.LargeListArray.from_arrays(starts, pa.array(run.scores))
    table = pa.table({"passages": passages, "scores": scores}).cast(RUN)
    with complete(path) as aside:
        pq.write_table(table, aside, row_group_size=1 << 12, write_page_checksum=True)


def read_run(path: Path | str) -> Run:
    """Read a run; path: a file, or a folder with one run."""
    path = Path(path)
    if path.is_dir():
        path = next(path.glob("*.parquet"), path)
    table = pq.ParquetFile(path, page_checksum_verification=True).read()
    lengths = pc.list_value_length(table["passages"]).to_numpy()
    lists = [pc.list_flatten(table[name]).to_numpy() for name in RUN.names]
    passages, scores = (values.copy() for values in lists)  # pyarrow's are read-only
    return Run(passages, scores, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
