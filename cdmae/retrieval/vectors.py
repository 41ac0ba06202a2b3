"""Inference (section 3.5): encoding passages and queries into vectors, and storing the passages'.

`cdmae.retrieval.kinds` has the kinds of vectors. Passages are encoded shard by shard. Each shard is
sorted by length, which gives the sequences of a chunk nearly equal lengths. After a kill, finished
shards are reused. With several GPUs, a process per GPU writes every n-th shard.

Shapes: `P` passages, `Q` queries, `D` dimensions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cdmae.arrays import write_array
from cdmae.errors import InputError
from cdmae.files import complete, digest, link, read_json, write_json
from cdmae.log import Progress, say
from cdmae.models import checkpoint, heads, packed, sequences
from cdmae.models.checkpoint import Model
from cdmae.models.heads import own, table
from cdmae.models.ragged import Ragged
from cdmae.retrieval import asking, kinds
from cdmae.retrieval.impacts import Impacts
from cdmae.retrieval.kinds import read_shards
from cdmae.retrieval.shards import Shard, Vectors, cut
from cdmae.tokens.corpus import read_tokens
from cdmae.tokens.tokenise import Tokeniser
from cdmae.training import setup
from cdmae.training.ranks import Ranks

SHARD = 1 << 15  # passages: 100 MB at 768 dimensions
MULTI_SHARD = 1 << 12  # passages with many vectors each: 50 MB at 50 x 128
BUDGET = {
    "cpu": 1 << 13,
    "cuda": 1 << 17,
}  # word-pieces per chunk, suited to the processor's cache or to a GPU


# --- a retriever that was trained here ------------------------------------------------------------


class Encoder:
    """A retriever that was trained here; `cdmae.retrieval.asking.encoder` describes the methods."""

    def __init__(self, system: dict[str, Any], length: int = 0, threads: int = 1) -> None:
        """Load the model of a system.

        system: its folder, `model`, and perhaps `uses`, the head of a unified retriever that
        computes the vectors, `dense` or `sparse`. length: texts are cut at so many word-pieces, or
        at the model's own limits if it is 0.
        """
        self.device = setup.set_up(threads)
        self.folder = system["model"]
        self.uses = system.get("uses", "")
        model = asking.loaded(checkpoint.load, self.folder, "retriever")
        self.retriever = checkpoint.at(model, length)
        self.retriever.network.to(self.device)

    def queries(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Encode queries: [Q, D]."""
        tokeniser = asking.loaded(Tokeniser, self.folder)
        source = sequences.tokenised(texts, tokeniser)
        read = sequences.texts(self.retriever, "query", source, np.arange(len(texts)))
        if self.retriever.target == "recall":
            return own.counts(read, heads.of("sparse").width(self.retriever.network))
        if self.retriever.table is not None:
            return table.weigh(read, self.retriever.table)
        return self._of_head(encode(self.retriever, read, self.device, progress))

    def passages(self, tokens: Path | str, progress: Progress | None = None) -> list[Shard]:
        """Return the shards of a collection's tokens; each is encoded again at every access."""
        source = read_tokens(tokens)
        checkpoint.check_tokens(self.retriever, source.word_starts, str(tokens))

        def make(first: int, last: int) -> Vectors:
            read = sequences.texts(self.retriever, "passage", source, np.arange(first, last))
            return self._of_head(encode(self.retriever, read, self.device, progress))

        size = MULTI_SHARD if self.retriever.head == "multi" else SHARD
        return cut(len(source), make, size)

    def _of_head(self, vectors: Vectors) -> Vectors:
        return vectors.head(self.uses) if self.uses else vectors


def encode(
    model: Model, read: Ragged, device: torch.device, progress: Progress | None = None
) -> Vectors:
    """Encode sequences: their vectors, in the same order.

    Raises `InputError` for NaN or infinity.
    """
    chunks = _chunks(model, read, device, progress)
    return kinds.OF_HEADS[model.head].gathered(model, read, chunks)


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


# --- stored vectors -------------------------------------------------------------------------------


def read_vectors(folder: Path | str) -> list[Shard] | Impacts:
    """Open a collection's vectors for a search: Lucene's index if it exists, or else the shards."""
    return Impacts.read(Path(folder)) or read_shards(folder)


def keep_vectors(folder: Path | str) -> list[Shard] | Impacts:
    """Open a collection's vectors for many searches; each shard is read and checked only once."""
    opened = read_vectors(folder)
    if isinstance(opened, Impacts):
        return opened
    return [Shard(shard.count, cache(shard.make)) for shard in opened]


def write_vectors(
    *,
    encoder: dict[str, Any],
    model: Path | None = None,
    source: Path,
    output: Path,
    length: int = 0,
    threads: int = 1,
    group: Ranks = Ranks(),  # noqa: B008 (never changed)
    code: Mapping[str, str] | None = None,
) -> None:
    """Write the vectors of a collection's passages into a folder, in passage order.

    encoder: the settings of the system that encodes the passages, with `encoded_by`
    (`retrieval.asking.encoder`). model: its folder, if it was trained here. source: the folder of
    the collection's tokens, or for a third party's model of its texts. group: each process writes a
    part of the shards, and the first joins all of them. code: hashes of the modules that encode;
    other code encodes again.

    A killed run resumes after its last complete shard. The shards (see `pieces`) are next to the
    folder above `output`, which is the output of a job.
    """
    setup.set_up(threads)
    system = encoder | ({"model": model} if model else {})
    key = [encoder, digest(system["model"]), digest(source), SHARD, length, code]
    folder = pieces_of(output.parent) / output.name
    with Progress(0, unit="passages", label="encode") as progress:
        shards = asking.encoder(system, length, threads).passages(source, progress)
        if group.first:
            pieces(output.parent, key, output.name)
        group.wait()
        share = list(enumerate(shards))[group.rank :: group.size]
        progress.total = sum(len(shard) for _, shard in share)
        for number, shard in share:
            if any(folder.glob(f"{number:05d}.np[yz]")):
                progress.advance(len(shard))
                continue
            made = shard[:]
            kinds.of(made).write(folder, f"{number:05d}", made)
        group.wait()
    if group.first:
        with complete(output) as aside:
            aside.mkdir()
            for path in folder.glob("*[0-9].np[yz]"):
                link(path, aside / path.name)


# --- pieces of an output, kept until it is complete -----------------------------------------------


def pieces(output: Path, key: Any, part: str = "") -> Path:
    """Make a hidden folder next to `output` for its finished pieces, or for those of one part.

    The folder remains, and the next run reuses its pieces if `key` is equal (JSON values that
    identify the input). It is outside of `output`, which Snakemake deletes before a job and after a
    failure. The workflow deletes the folder when it has recorded the output; those of vectors stay,
    as links to them, and when the output is made again for one more collection, only this one is
    encoded.
    """
    folder = pieces_of(output) / part
    kept = folder / "key.json"
    if folder.exists() and (not kept.exists() or read_json(kept) != key):
        shutil.rmtree(folder)
    done = len(list(folder.glob("[0-9]*.*")))
    if done:
        say(f"resuming with {done} finished pieces of {output}")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(kept, key)
    return folder


def pieces_of(output: Path) -> Path:
    """Return the hidden folder for the pieces of an output."""
    return output.with_name(f".{output.name}.pieces")


def piece(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Read an array if its file exists; otherwise compute the array and write it atomically."""
    if not path.exists():
        with complete(path) as aside:
            write_array(aside, make())
    return np.load(path, mmap_mode="r")
