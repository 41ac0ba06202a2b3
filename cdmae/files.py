"""Every format that crosses a rule, read and written here and nowhere else.

=============  ==========================================  =====================================================
artefact       path below ``results/``                     format
=============  ==========================================  =====================================================
collection     ``collections/{collection}/``               ``passages.parquet`` (passage_id, title, text; the row
                                                           number is the internal id), ``queries.parquet``
                                                           (split, query_id, text), ``qrels.parquet`` (split,
                                                           query, passage, grade; rows, not ids), ``about.json``
tokens         ``tokens/{start}/{collection}/``            ``ids.npy`` uint16 or uint32 [T], ``starts.npy`` int64
                                                           [P + 1], ``text_starts.npy`` int64 [P],
                                                           ``word_starts.npy`` bool [V]
run            ``runs/{system}/{collection}.{split}``      Parquet, one row per query in the order of the split:
               ``.parquet``                                ``passages`` list<int32>, ``scores`` list<float32>
vectors        ``vectors/{system}/{collection}/``          ``00000.npy``, ``00001.npy``, ... float32 [p, D]
measures       ``measures/{system}.tsv``                   collection, split, query_id, measure, value
importance     ``importance/{importance}/{start}/``        ``values.npy`` float16 [T], aligned with the tokens'
               ``{collection}/``                           ``ids.npy``; and the table that scores new text
=============  ==========================================  =====================================================

An output exists only when it is complete: it is written beside its place, synced and renamed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdmae.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

PASSAGES = pa.schema([("passage_id", pa.string()), ("title", pa.string()), ("text", pa.string())])
QUERIES = pa.schema([("split", pa.string()), ("query_id", pa.string()), ("text", pa.string())])
QRELS = pa.schema([("split", pa.string()), ("query", pa.int32()), ("passage", pa.int32()), ("grade", pa.int16())])
ROW_GROUP = 1 << 17  # passages that are written together, and read together at most
QUERY_GROUP, QUERIES_AT_ONCE = 1 << 12, 1 << 10  # queries of a run that are written, and read, together
RUN = pa.schema([("passages", pa.list_(pa.int32())), ("scores", pa.list_(pa.float32()))])


# --- outputs that exist only when complete ---------------------------------------------------------------------------


@contextmanager
def complete(path: Path | str) -> Iterator[Path]:
    """Yield a place beside `path` to write a file or a folder to; sync it and rename it to `path` at the end.

    After an error nothing is left behind. The caller creates the file, or calls ``mkdir`` on what is yielded.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    _remove(aside)
    try:
        yield aside
        _sync(aside)
        _remove(path)
        os.replace(aside, path)
        _sync_folder(path.parent)
    except BaseException:
        _remove(aside)
        raise


def write_text(path: Path | str, text: str) -> None:
    """Write a whole text file, UTF-8."""
    with complete(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write a JSON file, indented, keys in the order given."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path | str) -> Any:
    """Read a JSON file; raises `InputError` where it is not one."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is not JSON ({error}); {_again(path)}") from None


def _again(path: Path | str) -> str:
    """What to do about a damaged file: what is deleted must be a job's whole output, which may be a folder.

    Snakemake leaves a time stamp in the folders that it knows.
    """
    path = Path(path)
    output = next((each for each in path.parents if (each / ".snakemake_timestamp").exists()), path)
    return f"delete {'it' if output == path else output} and run again"


def link(path: Path | str, place: Path | str) -> None:
    """Give a file a second name; where the file system cannot, copy it."""
    try:
        os.link(path, place)
    except OSError:  # another file system, one without hard links, or too many of them
        shutil.copy2(path, place)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    for each in [path, *path.rglob("*")] if path.is_dir() else [path]:
        if each.is_dir():
            _sync_folder(each)
        else:
            with open(each, "rb") as file:
                os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what pyarrow raises for a damaged page into one sentence."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno:  # the system's, such as a disk that cannot be read
            raise
        raise InputError(f"{path} is damaged ({error}); {_again(path)}") from None


def _batches(file: pq.ParquetFile, path: Path, *arguments: Any) -> Iterator[pa.RecordBatch]:
    """The batches of `file`, read from `path`; `arguments`: of `ParquetFile.iter_batches`."""
    with _reading(path):
        yield from file.iter_batches(*arguments)


def _parquet(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} is not a complete Parquet file ({error}); delete it and run again") from None
    found = file.schema_arrow.names
    missing = [name for name in schema.names if name not in found]
    if missing:
        raise InputError(f"{path} has the columns {found} and lacks {missing}; delete it and run again")
    return file


# --- collections -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collection:
    """What a source yields: passages, and per split the queries and their judgments, by the source's own ids.

    passages: (passage_id, title, text), P rows, as a table, or as a stream that can be read once;
    queries: split -> frame (query_id, text);
    qrels: split -> frame (query_id, passage_id, grade), a key only for splits that have judgments;
    about: what is worth recording (versions, counts, drops with their reasons), JSON values.
    """

    passages: pa.Table | pa.RecordBatchReader
    queries: dict[str, pd.DataFrame]
    qrels: dict[str, pd.DataFrame]
    about: dict[str, Any]


def write_collection(folder: Path | str, collection: Collection) -> int:
    """Write the four files of a collection, ids turned into row numbers, and return the number of passages.

    A judgment that names an unknown id is an `InputError`.
    """
    import pandas as pd  # most jobs go without

    folder = Path(folder)
    named = {name for frame in collection.qrels.values() for name in frame["passage_id"]}
    count, rows = _write_passages(folder / "passages.parquet", collection.passages, sorted(named))
    queries, qrels = [], []
    for split, frame in collection.queries.items():
        queries.append(frame[["query_id", "text"]].assign(split=split))
        if split not in collection.qrels:
            continue
        judged = collection.qrels[split]
        query_rows = pd.Series(np.arange(len(frame), dtype=np.int32), index=frame["query_id"])
        query, passage = judged["query_id"].map(query_rows), judged["passage_id"].map(rows)
        for name, column in (("query_id", query), ("passage_id", passage)):
            if column.isna().any():
                unknown = judged[name][column.isna()].iloc[0]
                raise InputError(f"the qrels of split {split} name the unknown {name} {unknown!r}")
        qrels.append(
            pd.DataFrame({"split": split, "query": query, "passage": passage, "grade": judged["grade"]}).sort_values(
                ["query", "passage"], kind="stable"
            )
        )
    for name, schema, frames in (("queries", QUERIES, queries), ("qrels", QRELS, qrels)):
        frame = pd.concat(frames) if frames else pd.DataFrame(columns=schema.names)
        with complete(folder / f"{name}.parquet") as aside:
            table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            pq.write_table(table, aside, write_page_checksum=True)
    write_json(folder / "about.json", collection.about)
    return count


def _write_passages(path: Path, passages: pa.Table | pa.RecordBatchReader, judged: list[str]) -> tuple[int, pd.Series]:
    """Write the passages, a row group at a time; return how many, and the rows of the judged ones: id -> int32."""
    import pandas as pd

    if isinstance(passages, pa.Table):
        passages = passages.cast(PASSAGES).combine_chunks().to_reader(ROW_GROUP)
    wanted, rows, done = pa.array(judged, pa.string()), np.full(len(judged), -1, dtype=np.int32), 0
    with complete(path) as aside, pq.ParquetWriter(aside, PASSAGES, write_page_checksum=True) as writer:
        for batch in passages:
            found = pc.index_in(batch["passage_id"], wanted)
            here = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
            rows[found.drop_null().to_numpy()] = done + here
            writer.write_batch(batch)
            done += len(batch)
    return done, pd.Series(rows, index=judged)[rows >= 0]


def _passages(folder: Path | str) -> tuple[pq.ParquetFile, np.ndarray]:
    """The file of a collection's passages, and where its row groups begin and end: int64 [groups + 1]."""
    file = _parquet(Path(folder) / "passages.parquet", PASSAGES)
    lengths = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    return file, np.cumsum([0, *lengths])


def count_passages(folder: Path | str) -> int:
    """The number of passages P of a collection."""
    return int(_passages(folder)[1][-1])


def read_passages(folder: Path | str, columns: list[str] | None = None) -> pa.Table:
    """The passages of a collection, whole: a table (passage_id, title, text), P rows. Those of MS MARCO take 4 GB."""
    file = _passages(folder)[0]
    with _reading(Path(folder) / "passages.parquet"):
        return file.read(columns)


def stream_passages(
    folder: Path | str,
    columns: list[str] | None = None,
    *,
    rows: int = ROW_GROUP // 8,
    first: int = 0,
    last: int | None = None,
) -> Iterator[pa.Table]:
    """The passages from row `first` up to `last`, the end without it, in tables of `rows` rows, the last one shorter.

    No more of the file is held than a table and what Parquet keeps together.
    """
    file, edges = _passages(folder)
    last = int(edges[-1]) if last is None else last
    groups = np.flatnonzero((edges[:-1] < last) & (edges[1:] > first) & (first < last))
    begin = int(edges[groups[0]]) if len(groups) else 0
    held = file.schema_arrow.empty_table().select(columns or PASSAGES.names)
    for batch in _batches(file, Path(folder) / "passages.parquet", rows, groups.tolist(), columns):
        wanted = batch.slice(max(0, first - begin), max(0, last - max(first, begin)))
        begin += len(batch)
        held = pa.concat_tables([held, pa.Table.from_batches([wanted])])
        while len(held) >= rows:
            yield held.slice(0, rows)
            held = held.slice(rows)
    if len(held):
        yield held


def take_passages(folder: Path | str, rows: np.ndarray) -> pa.Table:
    """The passages of some rows, in their order; reads the row groups they lie in, one after the other."""
    file, edges = _passages(folder)
    rows = np.asarray(rows, dtype=np.int64)
    group = np.searchsorted(edges, rows, side="right") - 1
    order = np.argsort(group, kind="stable")
    with _reading(Path(folder) / "passages.parquet"):
        parts = [
            file.read_row_group(each).take(rows[order][group[order] == each] - edges[each])
            for each in np.unique(group).tolist()
        ]
    found = pa.concat_tables([file.schema_arrow.empty_table(), *parts])
    return found.take(np.argsort(order))


def _frame(path: Path, schema: pa.Schema) -> pd.DataFrame:
    file = _parquet(path, schema)
    with _reading(path):
        return file.read().to_pandas()


def read_queries(folder: Path | str, split: str) -> pd.DataFrame:
    """The queries of a split: a frame (query_id, text), Q rows; the row number is the internal id."""
    frame = _frame(Path(folder) / "queries.parquet", QUERIES)
    found = frame["split"].unique().tolist()
    if split not in found:
        raise InputError(f"{folder} has no queries for split {split!r}; it has {found or 'none'}")
    return frame.loc[frame["split"] == split, ["query_id", "text"]].reset_index(drop=True)


def read_qrels(folder: Path | str, split: str) -> pd.DataFrame:
    """The judgments of a split: a frame (query int32, passage int32, grade int16) of row numbers, sorted."""
    frame = _frame(Path(folder) / "qrels.parquet", QRELS)
    found = frame["split"].unique().tolist()
    if split not in found:
        raise InputError(f"{folder} has no judgments for split {split!r}; it has {found or 'none'}")
    return frame.loc[frame["split"] == split, ["query", "passage", "grade"]].reset_index(drop=True)


# --- tokens ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tokens:
    """The word-pieces of a collection, titles first, without special tokens.

    ids: uint16 or uint32 [T], memory-mapped; passage p is ``ids[starts[p]:starts[p + 1]]``; its text (after the title)
    begins at ``text_starts[p]``; ``word_starts[id]`` tells whether a word-piece begins a word.
    """

    ids: np.ndarray
    starts: np.ndarray
    text_starts: np.ndarray
    word_starts: np.ndarray

    def __len__(self) -> int:
        """The number of passages P."""
        return len(self.starts) - 1

    @classmethod
    def of(cls, ids: np.ndarray, lengths: np.ndarray, word_starts: np.ndarray) -> Tokens:
        """Tokens from the lengths of their segments: title, text, title, text, ...; int64 [2 P]."""
        edges = np.concatenate([[0], np.cumsum(lengths)])
        return cls(ids, edges[::2].copy(), edges[1::2].copy(), word_starts)


TOKENS = ("ids", "starts", "text_starts", "word_starts")


def write_tokens(folder: Path | str, tokens: Tokens) -> None:
    """Write the four arrays of `tokens` as a folder."""
    with complete(folder) as aside:
        aside.mkdir()
        for name in TOKENS:
            np.save(aside / f"{name}.npy", getattr(tokens, name))


def stream_tokens(
    folder: Path | str, parts: Iterable[tuple[np.ndarray, np.ndarray]], kind: type, word_starts: np.ndarray
) -> None:
    """Write what `write_tokens` would, from `parts` as they come: ids of type `kind`, and lengths as `Tokens.of`."""
    lengths = [np.empty(0, np.int64)]
    with complete(folder) as aside:
        aside.mkdir()
        with appending(aside / "ids.npy", kind) as append:
            for ids, each in parts:
                append(ids)
                lengths.append(each)
        tokens = Tokens.of(np.empty(0, kind), np.concatenate(lengths), word_starts)
        for name in TOKENS[1:]:
            np.save(aside / f"{name}.npy", getattr(tokens, name))


@contextmanager
def appending(path: Path, kind: type) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that writes arrays one after the other to the file that `np.save` would write of them joined."""
    length = 0

    def head() -> None:  # always as long: numpy leaves room for any number
        file.seek(0)
        shape = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(file, shape)

    def append(values: np.ndarray) -> None:
        nonlocal length
        file.write(np.ascontiguousarray(values, kind).data)
        length += len(values)

    with open(path, "wb") as file:
        head()
        yield append
        head()


def read_tokens(folder: Path | str) -> Tokens:
    """Read what `write_tokens` wrote; the ids stay on disk. Raises `InputError` where places or ids lead nowhere."""
    folder = Path(folder)
    found = Tokens(
        ids=read_array(folder / "ids.npy"),
        starts=np.array(read_array(folder / "starts.npy")),
        text_starts=np.array(read_array(folder / "text_starts.npy")),
        word_starts=np.array(read_array(folder / "word_starts.npy")),
    )
    _check_tokens(folder, found)
    return found


def _check_tokens(folder: Path, tokens: Tokens) -> None:
    """Refuse damaged places and ids: compiled code, which does not look where it reads, would crash on them."""
    starts, texts, pieces = tokens.starts, tokens.text_starts, len(tokens.word_starts)
    rising = len(starts) and starts[0] == 0 and starts[-1] == len(tokens.ids) and (starts[1:] >= starts[:-1]).all()
    within = rising and len(texts) == len(tokens) and ((texts >= starts[:-1]) & (texts <= starts[1:])).all()
    for name, right, what in (
        ("starts", rising, f"places that rise from 0 to {len(tokens.ids):,}, the word-pieces of ids.npy"),
        ("text_starts", within, "a place for every passage, between two of starts.npy"),
        (
            "ids",
            within and tokens.ids.dtype.kind in "ui" and _largest(tokens.ids) < pieces,
            f"numbers of the {pieces:,} word-pieces of word_starts.npy",
        ),
    ):
        if not right:
            raise InputError(f"{folder / name}.npy is damaged: it does not hold {what}; delete {folder} and run again")


def _largest(ids: np.ndarray) -> int:
    """The largest of memory-mapped numbers, read block by block beside the map, which would keep all of them."""
    if not isinstance(ids, np.memmap):
        return int(ids.max(initial=0))
    largest, block = 0, 1 << 22
    with open(str(ids.filename), "rb") as file:
        file.seek(ids.offset)
        while len(found := np.fromfile(file, ids.dtype, block)):
            largest = max(largest, int(found.max()))
    return largest


def read_array(path: Path | str) -> np.ndarray:
    """A memory-mapped array; raises `InputError` where the file is damaged."""
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a complete array ({error}); {_again(path)}") from None


# --- runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Ranked passages per query: query q has ``passages[starts[q]:starts[q + 1]]``, best first, ties by passage row.

    passages: int32 [N]; scores: float32 [N]; starts: int64 [Q + 1].
    """

    passages: np.ndarray
    scores: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        """The number of queries Q."""
        return len(self.starts) - 1

    def ranked(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """The passages and the scores of one query, views."""
        cut = slice(self.starts[query], self.starts[query + 1])
        return self.passages[cut], self.scores[cut]

    def split(self, counts: Iterable[int]) -> list[Run]:
        """The run of the first so many queries, of the next so many, and so on."""
        edges = np.cumsum([0, *counts])
        parts = [self.starts[first : last + 1] for first, last in pairwise(edges.tolist())]
        return [
            Run(self.passages[starts[0] : starts[-1]], self.scores[starts[0] : starts[-1]], starts - starts[0])
            for starts in parts
        ]

    @classmethod
    def of(cls, passages: list[np.ndarray], scores: list[np.ndarray]) -> Run:
        """Join one array of passages and one of scores per query."""
        starts = np.zeros(len(passages) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in passages], out=starts[1:])
        return cls(
            np.concatenate([np.empty(0, np.int32), *passages]).astype(np.int32, copy=False),
            np.concatenate([np.empty(0, np.float32), *scores]).astype(np.float32, copy=False),
            starts,
        )


def write_run(path: Path | str, run: Run) -> None:
    """Write a run, one row per query."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array(run.starts, pa.int64()), pa.array(each)).cast(field.type)
        for each, field in zip((run.passages, run.scores), RUN, strict=True)
    ]
    with complete(path) as aside:
        table = pa.Table.from_arrays(columns, schema=RUN)
        pq.write_table(table, aside, row_group_size=QUERY_GROUP, write_page_checksum=True)


def count_queries(path: Path | str) -> int:
    """The number of queries Q of a run."""
    return _parquet(Path(path), RUN).metadata.num_rows


def read_run(path: Path | str, rows: np.ndarray | None = None) -> Run:
    """Read a run; with `rows` only the lists of these queries, the others are empty. Held once, whatever its size."""
    file = _parquet(Path(path), RUN)
    groups = (file.metadata.row_group(group).column(0).num_values for group in range(file.num_row_groups))
    most = sum(groups)  # an empty list counts as one value
    passages, scores = np.empty(most, np.int32), np.empty(most, np.float32)
    wanted = np.ones(file.metadata.num_rows, bool) if rows is None else np.zeros(file.metadata.num_rows, bool)
    wanted[rows if rows is not None else ...] = True
    lengths, done, held = np.zeros(len(wanted), np.int64), 0, 0
    for batch in _batches(file, Path(path), QUERIES_AT_ONCE):
        here = wanted[done : done + len(batch)]
        batch = batch if here.all() else batch.filter(pa.array(here))
        found = batch["passages"].flatten()
        lengths[done + np.flatnonzero(here)] = batch["passages"].value_lengths().to_numpy()
        passages[held : held + len(found)], scores[held : held + len(found)] = found, batch["scores"].flatten()
        done, held = done + len(here), held + len(found)
    return Run(passages[:held], scores[:held], np.concatenate([[0], np.cumsum(lengths)]))


# --- vectors ---------------------------------------------------------------------------------------------------------


def read_vectors(folder: Path | str) -> list[np.ndarray]:
    """The shards of a collection's vectors, memory-mapped, in the order of the passages: float32 [p, D] each."""
    paths = sorted(Path(folder).glob("[0-9]*.npy"))
    if not paths:
        raise InputError(f"{folder} holds no vectors; delete it and run again")
    return [read_array(path) for path in paths]


@dataclass(frozen=True)
class Made:
    """A shard of vectors of this `shape` [p, D] that is made by `make` whenever it is read."""

    shape: tuple[int, int]
    make: Callable[[], np.ndarray]
    ndim = 2

    def __len__(self) -> int:
        """The number of passages p."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        """The vectors of some of its rows."""
        return self.make()[rows]


# --- measures --------------------------------------------------------------------------------------------------------

MEASURES = ["collection", "split", "query_id", "measure", "value"]


def write_measures(path: Path | str, measures: pd.DataFrame) -> None:
    """Write per-query measures (the columns of `MEASURES`) as a tab-separated file."""
    with complete(path) as aside:
        measures[MEASURES].to_csv(aside, sep="\t", index=False, float_format="%.6f")


def read_measures(path: Path | str) -> pd.DataFrame:
    """Read per-query measures; query ids stay strings."""
    frame = read_table(path, dtype={"query_id": str, "value": float}, keep_default_na=False)
    if frame.columns.tolist() != MEASURES:
        raise InputError(f"{path} has the columns {frame.columns.tolist()} instead of {MEASURES}; delete it")
    return frame


def read_table(path: Path | str, *, gaps: bool = True, **options: Any) -> pd.DataFrame:
    """Read a tab-separated file; raises `InputError` for one that is empty or cut. `options`: of `pandas.read_csv`.

    `gaps`: whether cells may be empty.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path, sep="\t", **options)
    except ValueError as error:  # of pandas' parser, too
        raise InputError(f"{path} is damaged ({error}); {_again(path)}") from None
    if not gaps and frame.isna().to_numpy().any():
        raise InputError(f"{path} is damaged (a row is not complete); {_again(path)}")
    return frame
