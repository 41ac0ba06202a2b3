"""Vectors of every kind on disk: read as they were written, and refused when damaged."""

import numpy as np
import pytest
from scipy import sparse

from cdmae.errors import InputError
from cdmae.log import Progress
from cdmae.models.ragged import starts_of
from cdmae.retrieval import kinds, vectors
from cdmae.retrieval.kinds.dual import DualVectors
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.retrieval.shards import cut


def drawn(kind):
    """The vectors of 11 texts."""
    generator = np.random.default_rng(3)
    dense = generator.standard_normal((11, 6)).astype(np.float32)
    weights = sparse.csr_array(dense * (dense > 0.5))
    if kind is kinds.multi:
        lengths = generator.integers(1, 5, 11)
        values = generator.standard_normal((lengths.sum(), 6)).astype(np.float16)
        pieces = generator.integers(0, 9, lengths.sum()).astype(np.int32)
        return MultiVectors(values, starts_of(lengths), pieces)
    both = DualVectors(dense, weights)
    return {kinds.dense: dense, kinds.sparse: weights, kinds.dual: both}[kind]


def arrays(made):
    """All numbers of some vectors."""
    if isinstance(made, MultiVectors):
        return made.values, made.starts, made.pieces
    if isinstance(made, DualVectors):
        return made.dense, made.sparse.toarray()
    return (made.toarray() if sparse.issparse(made) else made,)


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.__name__.split(".")[-1])
def test_shards_are_read_as_they_were_written(tmp_path, kind):
    made = drawn(kind)
    shards = cut(11, lambda first, last: made[first:last], 5)
    with Progress(11, unit="passages", label="write") as progress:
        vectors.write(tmp_path / "v", shards, [], progress)
    read = vectors.read_vectors(tmp_path / "v")
    assert [len(shard) for shard in read] == [5, 5, 1]
    whole = kind.joined([shard[:] for shard in read])
    for first, second in zip(arrays(whole), arrays(made), strict=True):
        np.testing.assert_array_equal(first, second)
    damaged = tmp_path / "v" / f"00001{kind.SUFFIX}"
    content = damaged.read_bytes()
    damaged.unlink()  # it may be a link
    damaged.write_bytes(content[:-5])
    with pytest.raises(InputError, match="00001.* is not a complete"):
        read[1][:]
