"""Inference (section 3.5): encoding passages and queries with a retriever.

The type of the vectors depends on the retriever's head: arrays (dense), CSR matrices (sparse), or
`MultiVectors` (a vector per word-piece). A unified retriever, with a dense and a sparse head, has
`DualVectors`. Passages are encoded shard by shard. Each shard is sorted by length, which gives the
sequences of a chunk nearly equal lengths. After a kill, finished shards are reused.

Shapes: `P` passages, `Q` queries, `D` dimensions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from cdmae.arrays import read_array, write_array
from cdmae.errors import InputError
from cdmae.files import complete, digest, link, read_json, remedy, write_json
from cdmae.log import Progress, say
from cdmae.models import checkpoint, heads, packed, sequences
from cdmae.models.checkpoint import Model
from cdmae.models.heads import own
from cdmae.models.heads.multi import scored
from cdmae.models.ragged import Ragged, indices
from cdmae.retrieval import dual, entries, impacts, multivectors
from cdmae.retrieval.asking import Load
from cdmae.retrieval.dual import DualVectors
from cdmae.retrieval.impacts import Impacts
from cdmae.retrieval.multivectors import MultiVectors
from cdmae.tokens.corpus import read_tokens
from cdmae.tokens.tokenise import Tokeniser
from cdmae.training import setup

SHARD = 1 << 15  # passages: 100 MB at 768 dimensions
MULTI_SHARD = 1 << 12  # passages with many vectors each: 50 MB at 50 x 128
BUDGET = {
    "cpu": 1 << 13,
    "cuda": 1 << 17,
}  # word-pieces per chunk, suited to the processor's cache or to a GPU
Vectors = np.ndarray | sparse.csr_array | MultiVectors | DualVectors  # float32 [n, D]


@dataclass(frozen=True)
class Shard:
    """A shard of vectors of `shape` [p, D]; `make` computes or reads them at each access."""

    shape: tuple[int, int]
    make: Callable[[], Vectors]

    def __len__(self) -> int:
        """Return the number of passages p."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Vectors:
        """Return the vectors of the given rows."""
        return self.make()[rows]


def read_vectors(folder: Path | str) -> list[Shard] | Impacts:
    """Open a collection's vectors for a search: Lucene's index if it exists, or else the shards."""
    shards = read_shards(folder)
    return Impacts.read(Path(folder), shards[0].shape[1]) or shards


def keep_vectors(folder: Path | str) -> list[Shard] | Impacts:
    """Open a collection's vectors for many searches; each shard is read and checked only once."""
    opened = read_vectors(folder)
    if isinstance(opened, Impacts):
        return opened
    return [Shard(shard.shape, cache(shard.make)) for shard in opened]


def read_shards(folder: Path | str) -> list[Shard]:
    """Open a collection's vector shards in passage order: float32 [p, D] each, or multi-vectors.

    A shard's checksum is verified when a search reads the shard, which avoids reading the disk
    twice. Arrays are memory-mapped; sparse matrices are read into memory.
    """
    shards = []
    paths = sorted(Path(folder).glob(f"[0-9]*{entries.SUFFIX}"))
    if any(Path(folder).glob(f"{dual.DENSE}*")):
        return [Shard(dual.shape(path), partial(dual.read, path)) for path in paths]
    if paths:
        return [Shard(entries.shape(path), partial(entries.read, path)) for path in paths]
    paths = sorted(Path(folder).glob("[0-9]*.npy"))
    if any(Path(folder).glob(f"{multivectors.TOKENS}*")):
        return [Shard(multivectors.shape(path), partial(multivectors.read, path)) for path in paths]
    if not paths:
        raise InputError(f"{folder} contains no vectors; delete it and run again")
    for path in paths:
        found = read_array(path)
        width = shards[0].shape[1] if shards else found.shape[-1]
        if found.ndim != 2 or found.dtype != np.float32 or found.shape[1] != width:
            what = f"an array of {found.dtype} with shape {list(found.shape)}"
            raise InputError(
                f"{path} contains {what}; allowed: float32 in two dimensions; {remedy(path)}"
            )
        shards.append(Shard(found.shape, partial(read_array, path)))
    return shards


def cut(count: int, width: int, make: Callable[[int, int], Vectors], size: int = 0) -> list[Shard]:
    """Cut `count` passages into shards of D = `width`; make(first, last) returns their vectors.

    size: the number of passages per shard; 0: `SHARD`.
    """
    edges = [*range(0, count, size or SHARD), count]
    return [
        Shard((last - first, width), partial(make, first, last)) for first, last in pairwise(edges)
    ]


def write(
    output: Path,
    shards: list[Shard],
    key: Any,
    progress: Progress,
    engine: str = "exact",
    threads: int = 1,
    bm25: dict[str, float] | None = None,
) -> None:
    """Write shards into the folder `output`; reuse the shards of a killed run (see `pieces`).

    engine: `lucene` adds an index of sparse vectors; `bm25` adds an index of their weights as term
    frequencies, which is searched with the k1 and b in the argument `bm25`.
    """
    folder = pieces(output, key)
    for number, shard in enumerate(shards):
        if any(folder.glob(f"{number:05d}.np[yz]")):
            progress.advance(len(shard))
            continue
        vectors = shard[:]
        if isinstance(vectors, MultiVectors):
            multivectors.write(folder, f"{number:05d}.npy", vectors)
        elif isinstance(vectors, DualVectors):
            dual.write(folder, f"{number:05d}", vectors)
        elif sparse.issparse(vectors):
            entries.write(folder / f"{number:05d}{entries.SUFFIX}", vectors)
        else:
            piece(folder / f"{number:05d}.npy", lambda vectors=vectors: vectors)
    with complete(output) as aside:
        aside.mkdir()
        for path in folder.glob("*[0-9].np[yz]"):
            link(path, aside / path.name)
        if engine != "exact":
            index = aside / impacts.FOLDER
            impacts.build(read_shards(aside), index, threads, frequencies=engine == "bm25")
        if engine == "bm25":
            write_json(aside / impacts.BM25, bm25)


def encode_passages(
    model: Path | str,
    tokens: Path | str,
    output: Path | str,
    threads: int = 1,
    length: int = 0,
    engine: str = "exact",
    k1: float = 10.0,
    b: float = 0.9,
    vectors: Path | None = None,
    uses: str = "",
) -> None:
    """Write a collection's vectors into a folder: float32 shards [p, D] in passage order.

    Passages are cut at `length` word-pieces, or at the model's own limit if `length` is 0. A killed
    run resumes after its last complete shard. engine, k1, b: see `write`. vectors, uses: instead of
    encoding, links to the vectors of one head, `dense` or `sparse`, in the folder of a unified
    retriever's vectors.
    """
    if vectors:
        _link_head(vectors, Path(output), uses, engine, threads)
        return
    key = [digest(model), digest(tokens), SHARD, length]
    with Progress(0, unit="passages", label="encode") as progress:
        encoded = shards(model, tokens, threads, length, progress)
        progress.total = sum(map(len, encoded))
        write(Path(output), encoded, key, progress, engine, threads, {"k1": k1, "b": b})


def _link_head(vectors: Path, output: Path, uses: str, engine: str, threads: int) -> None:
    with complete(output) as aside:
        aside.mkdir()
        dual.link_head(vectors, aside, uses)
        if engine != "exact":
            impacts.build(read_shards(aside), aside / impacts.FOLDER, threads)


def passages(system: dict[str, Any], tokens: Path, length: int, threads: int) -> list[Shard]:
    """Return the vectors of a collection by the model in `system`, encoded at every access."""
    return shards(system["model"], tokens, threads, length, uses=system.get("uses", ""))


def shards(
    model: Path | str,
    tokens: Path | str,
    threads: int,
    length: int = 0,
    progress: Progress | None = None,
    uses: str = "",
) -> list[Shard]:
    """Return a collection's shards, float32 [p, D]; each is encoded again at every access.

    uses: the head of a unified retriever that computes the vectors, `dense` or `sparse`; "": both
    heads.
    """
    device = setup.set_up(threads)
    source = read_tokens(tokens)
    retriever = checkpoint.at(checkpoint.load(model, "retriever"), length)
    checkpoint.check_tokens(retriever, source.word_starts, str(tokens))
    retriever.network.to(device)

    def make(first: int, last: int) -> Vectors:
        rows = np.arange(first, last)
        read = sequences.texts(retriever, "passage", source, rows)
        encoded = of_head(encode(retriever, read, device, progress), uses)
        return encoded.rounded() if isinstance(encoded, MultiVectors) else encoded

    size = MULTI_SHARD if retriever.head == "multi" else 0
    width = heads.of(uses or retriever.head).width(retriever.network)
    return cut(len(source), width, make, size)


class QueryEncoder:
    """The retriever in a folder, with its tokenizer, for any number of queries."""

    def __init__(self, model: Path | str, threads: int = 1, length: int = 0) -> None:
        """Load the model; queries are cut at `length` word-pieces, or at the model's limit if 0."""
        self.device = setup.set_up(threads)
        self.retriever = checkpoint.at(checkpoint.load(model, "retriever"), length)
        self.retriever.network.to(self.device)
        self.tokeniser = Tokeniser(model, threads)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode queries: float32 [Q, D]."""
        source = sequences.tokenised(texts, self.tokeniser)
        read = sequences.texts(self.retriever, "query", source, np.arange(len(texts)))
        if self.retriever.target == "recall":
            return own.counts(read, heads.of(self.retriever.head).width(self.retriever.network))
        return encode(self.retriever, read, self.device)


def encode_queries(
    model: Path | str, texts: Sequence[str], threads: int = 1, length: int = 0, uses: str = ""
) -> Vectors:
    """Encode queries with the retriever in a folder, cut at `length` if not 0: float32 [Q, D].

    uses: the head of a unified retriever, see `shards`.
    """
    return of_head(QueryEncoder(model, threads, length).encode(texts), uses)


def of_head(vectors: Vectors, uses: str) -> Vectors:
    """Return the vectors of one head of a unified retriever, or all if `uses` is ""."""
    return vectors.head(uses) if uses else vectors


def joined(parts: Sequence[Vectors]) -> Vectors:
    """Concatenate the vectors of several lists of texts."""
    if isinstance(parts[0], MultiVectors):
        return multivectors.joined(parts)
    if isinstance(parts[0], DualVectors):
        return dual.joined(parts)
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def encode(
    model: Model, read: Ragged, device: torch.device, progress: Progress | None = None
) -> Vectors:
    """Encode sequences: one vector per sequence, in the same order, float32 [n, D].

    Raises `InputError` for NaN or infinity.
    """
    width = heads.of(model.head).width(model.network)
    if model.head == "multi":
        pieces = scored(read, model.network)
        values = np.empty((len(pieces.values), width), dtype=np.float32)
        for rows, vectors in _chunks(model, read, device, progress):
            values[indices(pieces.starts[rows], pieces.lengths[rows])] = vectors
        paired = model.match == "equal"
        return MultiVectors(values, pieces.starts, pieces.values.astype(np.int32), paired)
    # a unified head's weights come first
    words = model.network.config.vocab_size if model.head in ("sparse", "unified") else 0
    dense = np.empty((len(read), width - words), dtype=np.float32)
    order = [np.empty(0, np.int64)]
    parts = [sparse.csr_array((0, words), dtype=np.float32)]
    for rows, vectors in _chunks(model, read, device, progress):
        dense[rows] = vectors[:, words:]
        if words:
            order.append(rows)
            parts.append(sparse.csr_array(vectors[:, :words]))
    if not words:
        return dense
    weights = joined(parts)[np.argsort(np.concatenate(order))]
    return weights if model.head == "sparse" else DualVectors(dense, weights, model.dense_weight)


@torch.inference_mode()
def _chunks(
    model: Model, read: Ragged, device: torch.device, progress: Progress | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows and the vectors of each chunk; a chunk's sequences have similar lengths."""
    head = heads.of(model.head)
    for rows in sequences.chunks(read.lengths, BUDGET[device.type]):
        with setup.autocast(setup.scoring_precision(model.precision, device), device):
            batch = packed.pack(read.take(rows), device)
            vectors = head.vectors(model.network, batch, model).float().cpu().numpy()
        if not np.isfinite(vectors).all():
            raise InputError(
                "the model's vectors contain NaN or infinity: its training diverged, or its states "
                "overflow in fp16 on this GPU; train it again, with precision fp32"
            )
        yield rows, vectors
        if progress:
            progress.advance(len(rows))


# --- pieces of an output, kept until it is complete
# --------------------------------------------------


def pieces(output: Path, key: Any) -> Path:
    """Make a hidden folder next to `output` for its finished pieces.

    The folder remains, and the next run reuses its pieces if `key` is equal (JSON values that
    identify the input). It is outside of `output`, which Snakemake deletes before a job and after a
    failure. The workflow deletes the folder when it has recorded the output.
    """
    folder = output.with_name(f".{output.name}.pieces")
    kept = folder / "key.json"
    if folder.exists() and (not kept.exists() or read_json(kept) != key):
        shutil.rmtree(folder)
    done = len(list(folder.glob("[0-9]*.*")))
    if done:
        say(f"resuming with {done} finished pieces of {output}")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(kept, key)
    return folder


def piece(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Read an array if its file exists; otherwise compute the array and write it atomically."""
    if not path.exists():
        with complete(path) as aside:
            write_array(aside, make())
    return read_array(path)


def encode_asked(
    system: dict[str, Any], texts: Sequence[str], length: int, threads: int, load: Load
) -> Vectors:
    """Encode queries for `cdmae.retrieval.asking.encode`; `system` holds the folder `model`."""
    encoded = load(QueryEncoder, system["model"], threads, length).encode(texts)
    return of_head(encoded, system.get("uses", ""))
