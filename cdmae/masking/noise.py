"""Random numbers as a function of (key, passage, column), independent of the batch.

A key is a hash of (seed, purpose, epoch). All passages of a batch share one key, or have one each,
uint64 [B]. Each passage has its own stream, seeded by a hash of its key and its row, and each
column gets one draw from that stream: splitmix64 (Steele et al. 2014), which passes BigCrush.
Normal numbers are exact, by Marsaglia and Tsang's ziggurat with 256 layers. Different values of
`salt` give different streams for the same key.

Shapes: `B` passages, `n` columns.
"""

from __future__ import annotations

import hashlib

import numpy as np

from cdmae.compiled import compiled

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53
LAYERS = 256
EDGE = 3.6541528853610088  # right edge of the lowest layer's box, where the tail begins
AREA = 0.00492867323399  # the area of each layer, under exp(-x^2 / 2)

Key = np.uint64 | np.ndarray


def _ziggurat() -> np.ndarray:
    """Compute the right edges of the layers, from the lowest to the top at 0: float64 [257]."""
    edges = np.zeros(LAYERS + 1)
    edges[0] = AREA / np.exp(-0.5 * EDGE**2)
    edges[1] = EDGE
    for layer in range(2, LAYERS):
        height = AREA / edges[layer - 1] + np.exp(-0.5 * edges[layer - 1] ** 2)
        edges[layer] = np.sqrt(-2 * np.log(height))
    return edges


EDGES = _ziggurat()
HEIGHTS = np.exp(-0.5 * EDGES**2)


def key(seed: int, purpose: str, epoch: int) -> np.uint64:
    """Return the key of (seed, purpose, epoch), the same in every process."""
    text = f"{int(seed)} {purpose} {int(epoch)}".encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))


def draws(key: Key, rows: np.ndarray, length: int, *, salt: int) -> np.ndarray:
    """Draw 64 random bits for each column of the passages `rows`: uint64 [B, n], n = `length`."""
    bits = np.empty((len(rows), length), np.uint64)
    _draws(np.full(len(rows), key, np.uint64), rows, np.uint64(salt), bits)
    return bits


def uniforms(key: Key, rows: np.ndarray, length: int, *, salt: int) -> np.ndarray:
    """Draw numbers in [0, 1): float32 [B, n]."""
    return (draws(key, rows, length, salt=salt) >> np.uint64(40)).astype(np.float32) * np.float32(
        2.0**-24
    )


def normals(key: Key, rows: np.ndarray, length: int, *, salt: int) -> np.ndarray:
    """Draw standard normal numbers: float32 [B, n]."""
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
        stream = _scramble(keys[passage] + salt * GOLDEN)
        state = _scramble(stream + np.uint64(rows[passage]) * GOLDEN)
        into = bits[passage]
        for column in range(len(into)):
            into[column] = _scramble(state + np.uint64(column) * GOLDEN)


@compiled
def _uniform(draw):  # noqa: ANN001, ANN202
    return np.float64(draw >> np.uint64(11)) * UNIT


@compiled
def _normals(draws, numbers):  # noqa: ANN001, ANN202
    for passage in range(len(draws)):
        for position in range(draws.shape[1]):
            numbers[passage, position] = _normal(draws[passage, position])


@compiled
def _normal(draw):  # noqa: ANN001, ANN202
    while True:
        layer = np.int64(draw & np.uint64(LAYERS - 1))
        x = (2.0 * _uniform(draw) - 1.0) * EDGES[layer]
        if abs(x) < EDGES[layer + 1]:
            return x
        draw = _scramble(draw + GOLDEN)
        if layer == 0:
            while True:  # the tail
                beyond = -np.log(1.0 - _uniform(draw)) / EDGE
                draw = _scramble(draw + GOLDEN)
                if -2.0 * np.log(1.0 - _uniform(draw)) > beyond * beyond:
                    return EDGE + beyond if x > 0.0 else -EDGE - beyond
                draw = _scramble(draw + GOLDEN)
        low = HEIGHTS[layer]
        high = HEIGHTS[layer + 1]
        if low + _uniform(draw) * (high - low) < np.exp(-0.5 * x * x):
            return x
        draw = _scramble(draw + GOLDEN)
