"""The kinds of vectors, one file each: what the vectors of texts are in memory, on disk and in a
search.

A kind is a module with

- ``TYPE``, the class of its vectors, which can be sliced;
- ``gathered(model, read, chunks)``, the vectors of the sequences `read` from those of its chunks,
  each as the rows in `read` and an array of the head's vectors;
- ``joined(parts)``, the vectors of several lists of texts as one;
- ``write(folder, name, vectors)``, which ends with the file ``name`` + ``SUFFIX``; ``read(path)``
  of that file, and ``count(path)``, its number of texts; ``MARK``, a pattern of files that tells
  the kind of a folder;
- ``search(queries, shards, depth, candidates=..., threads=..., device=...)``: the exact search,
  ties by row; a kind ignores what it does not need.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType

from cdmae.errors import InputError
from cdmae.retrieval.kinds import dense, dual, multi, sparse
from cdmae.retrieval.shards import Shard, Vectors

KINDS = (dual, multi, sparse, dense)
OF_HEADS = {"dense": dense, "sparse": sparse, "multi": multi, "unified": dual}


def of(vectors: Vectors) -> ModuleType:
    """Return the kind of vectors."""
    return next(kind for kind in KINDS if isinstance(vectors, kind.TYPE))


def read_shards(folder: Path | str) -> list[Shard]:
    """Open a collection's vectors in passage order, each shard as a search reads it.

    A shard's checksum is verified when a search reads the shard, which avoids reading the disk
    twice. Dense and multi-vectors are memory-mapped; sparse matrices are read into memory.
    """
    for kind in KINDS:
        if any(Path(folder).glob(kind.MARK)):
            paths = sorted(Path(folder).glob(f"[0-9]*{kind.SUFFIX}"))
            return [Shard(kind.count(path), partial(kind.read, path)) for path in paths]
    raise InputError(f"{folder} contains no vectors; delete it and run again")
