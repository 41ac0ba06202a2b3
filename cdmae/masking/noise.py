"""Random numbers that are a function of their place: (key, passage, position), whatever the batch they are drawn in.

A key stands for (seed, purpose, epoch); passages share one, or have one each, uint64 [B]. Each passage has its own
stream, a hash of its key and its row, and each position one draw of it: splitmix64 (Steele et al. 2014), which passes
BigCrush. Normal numbers are exact, by Marsaglia and Tsang's ziggurat with 256 layers.

B passages, n positions. `salt` tells apart several streams of one key.
"""

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

Key = np.uint64 | np.ndarray


def _ziggurat() -> np.ndarray:
    """Return the right edges of the layers, from the lowest (as wide as its area demands) to the top at 0: [257]."""
    edges = np.zeros(LAYERS + 1)
    edges[0] = AREA / np.exp(-0.5 * EDGE**2)
    edges[1] = EDGE
    for layer in range(2, LAYERS):
        edges[layer] = np.sqrt(-2 * np.log(AREA / edges[layer - 1] + np.exp(-0.5 * edges[layer - 1] ** 2)))
    return edges


EDGES = _ziggurat()
HEIGHTS = np.exp(-0.5 * EDGES**2)


def key(seed: int, purpose: str, epoch: int) -> np.uint64:
    """Return the key of a purpose and an epoch: the same in every process, and unlike every other key."""
    text = f"{int(seed)} {purpose} {int(epoch)}".encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))


def draws(key: Key, rows: np.ndarray, length: int, *, salt: int) -> np.ndarray:
    """64 random bits for each position of the passages `rows`: uint64 [B, length]."""
    bits = np.empty((len(rows), length), np.uint64)
    _draws(np.full(len(rows), key, np.uint64), rows, np.uint64(salt), bits)
    return bits


def uniforms(key: Key, rows: np.ndarray, length: int, *, salt: int) -> np.ndarray:
    """Return numbers in [0, 1): float32 [B, length]."""
    return (draws(key, rows, length, salt=salt) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def normals(key: Key, rows: np.ndarray, length: int, *, salt: int) -> np.ndarray:
    """Return standard normal numbers: float32 [B, length]."""
    numbers = np.empty((len(rows), length), np.float32)
    _normals(draws(key, rows, length, salt=salt), numbers)
    return numbers


@compiled
def _scramble(state):  # noqa: ANN001, ANN202
    # The output function of splitmix64: one to one on 64 bits.
    state = (state ^ (state >> np.uint64(30))) * FIRST
    state = (state ^ (state >> np.uint64(27))) * SECOND
    return state ^ (state >> np.uint64(31))


@compiled
def _draws(keys, rows, salt, bits):  # noqa: ANN001, ANN202
    for passage in range(len(rows)):
        state = _scramble(_scramble(keys[passage] + salt * GOLDEN) + np.uint64(rows[passage]) * GOLDEN)
        into = bits[passage]
        for place in range(len(into)):
            into[place] = _scramble(state + (np.uint64(place) + np.uint64(1)) * GOLDEN)


@compiled
def _uniform(draw):  # noqa: ANN001, ANN202
    return np.float64(draw >> np.uint64(11)) * UNIT


@compiled
def _normals(draws, numbers):  # noqa: ANN001, ANN202
    for passage in range(len(draws)):
        bits, into = draws[passage], numbers[passage]
        for place in range(len(bits)):
            layer = np.int64(bits[place] & np.uint64(LAYERS - 1))
            x = (2.0 * _uniform(bits[place]) - 1.0) * EDGES[layer]
            into[place] = x if abs(x) < EDGES[layer + 1] else np.nan
        for place in range(len(bits)):
            if np.isnan(into[place]):  # one in a hundred lies outside its layer's rectangle
                into[place] = _normal(bits[place])


@compiled
def _normal(draw):  # noqa: ANN001, ANN202
    while True:
        layer = np.int64(draw & np.uint64(LAYERS - 1))
        x = (2.0 * _uniform(draw) - 1.0) * EDGES[layer]
        if abs(x) < EDGES[layer + 1]:
            return x
        draw = _scramble(draw + GOLDEN)
        if layer == 0:
            while True:  # the tail beyond the edge
                beyond = -np.log(1.0 - _uniform(draw)) / EDGE
                draw = _scramble(draw + GOLDEN)
                if -2.0 * np.log(1.0 - _uniform(draw)) > beyond * beyond:
                    return EDGE + beyond if x > 0.0 else -EDGE - beyond
                draw = _scramble(draw + GOLDEN)
        low, high = HEIGHTS[layer], HEIGHTS[layer + 1]
        if low + _uniform(draw) * (high - low) < np.exp(-0.5 * x * x):
            return x
        draw = _scramble(draw + GOLDEN)
