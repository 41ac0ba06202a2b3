"""Random numbers that are a function of their place: (key, passage, position), whatever the batch they are drawn in.

A key stands for (seed, purpose, epoch). Each passage has its own stream, a hash of the key and the passage's row, and
each position one draw of it: splitmix64 (Steele et al. 2014), which passes BigCrush. Normal numbers are exact, by
Marsaglia and Tsang's ziggurat with 256 layers.
"""

# ruff: noqa: ANN001, ANN201 (numba infers the types)
from __future__ import annotations

import hashlib

import numpy as np

from cdmae.compiled import compiled

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53
LAYERS = 256
EDGE = 3.6541528853610088  # where the lowest layer's box ends and the tail begins
AREA = 0.00492867323399  # of each layer, under exp(-x^2 / 2)


def _ziggurat() -> np.ndarray:
    """The right edges of the layers, from the lowest (as wide as its area demands) to the top at 0: [257]."""
    edges = np.zeros(LAYERS + 1)
    edges[0] = AREA / np.exp(-0.5 * EDGE**2)
    edges[1] = EDGE
    for layer in range(2, LAYERS):
        edges[layer] = np.sqrt(-2 * np.log(AREA / edges[layer - 1] + np.exp(-0.5 * edges[layer - 1] ** 2)))
    return edges


EDGES = _ziggurat()
HEIGHTS = np.exp(-0.5 * EDGES**2)


def key(seed: int, purpose: str, epoch: int) -> np.uint64:
    """The key of a purpose and an epoch: the same in every process, and unlike every other key."""
    text = f"{int(seed)} {purpose} {int(epoch)}".encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))


@compiled
def scramble(state):
    """The output function of splitmix64: one to one on 64 bits."""
    state = (state ^ (state >> np.uint64(30))) * FIRST
    state = (state ^ (state >> np.uint64(27))) * SECOND
    return state ^ (state >> np.uint64(31))


@compiled
def stream(key, row, salt):
    """The state of a passage's stream; streams of different `salt` are independent."""
    return scramble(scramble(np.uint64(key) + np.uint64(salt) * GOLDEN) + np.uint64(row) * GOLDEN)


@compiled
def bits(state, place):
    """The 64 random bits at a place of a stream."""
    return scramble(np.uint64(state) + (np.uint64(place) + np.uint64(1)) * GOLDEN)


@compiled
def uniform(draw):
    """A number in [0, 1) from 64 random bits."""
    return np.float64(draw >> np.uint64(11)) * UNIT


@compiled
def normals(state, into):
    """Standard normal numbers from the first places of a stream, written to `into` float64."""
    for place in range(len(into)):
        draw = bits(state, place)
        layer = np.int64(draw & np.uint64(LAYERS - 1))
        x = (2.0 * uniform(draw) - 1.0) * EDGES[layer]
        into[place] = x if abs(x) < EDGES[layer + 1] else np.nan
    for place in range(len(into)):
        if np.isnan(into[place]):  # one in a hundred lies outside its layer's rectangle
            into[place] = normal(bits(state, place))


@compiled
def normal(draw):
    """A standard normal number from 64 random bits."""
    while True:
        layer = np.int64(draw & np.uint64(LAYERS - 1))
        x = (2.0 * uniform(draw) - 1.0) * EDGES[layer]
        if abs(x) < EDGES[layer + 1]:
            return x
        draw = scramble(draw + GOLDEN)
        if layer == 0:
            while True:  # the tail beyond the edge
                beyond = -np.log(1.0 - uniform(draw)) / EDGE
                draw = scramble(draw + GOLDEN)
                if -2.0 * np.log(1.0 - uniform(draw)) > beyond * beyond:
                    return EDGE + beyond if x > 0.0 else -EDGE - beyond
                draw = scramble(draw + GOLDEN)
        low, high = HEIGHTS[layer], HEIGHTS[layer + 1]
        if low + uniform(draw) * (high - low) < np.exp(-0.5 * x * x):
            return x
        draw = scramble(draw + GOLDEN)
