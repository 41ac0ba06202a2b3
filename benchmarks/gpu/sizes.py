"""Define the sizes: BERT base and the paper's shapes on a GPU, toy sizes on a CPU."""

from __future__ import annotations

from dataclasses import dataclass

from cdmae.plan.flops import Network


@dataclass(frozen=True)
class Sizes:
    """The sizes of every part of the GPU benchmark.

    network: a key of `benchmarks.pretraining.SIZES`
    batch, length: passages of a pre-training step, and their length
    groups: queries x passages of a fine-tuning step, then of a step with a teacher
    chunk: passages computed together
    encoded: passages and pairs that are encoded
    peer: passages in a batch of the peers
    vectors, asked, depth: of a search
    repeats: steps that are timed
    collection, steps: passages that the scripts read, and steps of their pre-training
    """

    network: str
    vocabulary: int
    batch: int
    length: int
    groups: tuple[tuple[int, int], tuple[int, int]]
    chunk: int
    encoded: int
    peer: int
    vectors: int
    asked: int
    depth: int
    repeats: int
    collection: int
    steps: int

    @property
    def plan(self) -> Network:
        """Return the network's dimensions, in the form that `cdmae.plan` counts."""
        from benchmarks.pretraining import SIZES  # which needs more packages than some parts do

        layers, width, heads = SIZES[self.network]
        return Network(layers, width, 4 * width, self.vocabulary, heads)


PAPER = Sizes(
    "base",
    30522,
    batch=2048,
    length=150,
    groups=((64, 32), (32, 64)),
    chunk=768,
    encoded=1 << 14,
    peer=256,
    vectors=500_000,
    asked=1000,
    depth=1000,
    repeats=5,
    collection=50_000,
    steps=300,
)
TOY = Sizes(
    "tiny", 4096, batch=8, length=32, groups=((3, 4), (2, 6)), chunk=8, encoded=40,
    peer=16, vectors=500, asked=20, depth=10, repeats=1, collection=400, steps=6,
)  # fmt: skip
