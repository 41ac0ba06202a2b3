"""Mask the k highest values of each row: the last step of strategies that rank word-pieces."""

# ruff: noqa: ANN001, ANN202 (numba infers the types)
from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled

HALF = np.int32(0x7FFFFFFF)


def budget(candidates, ratio):
    """Compute k = floor(n x p) for n candidates per passage (Algorithm 1, line 6): int64 [B].

    ratio: p, or one for each passage, [B].
    """
    return _budget(candidates, np.zeros(len(candidates)) + ratio)


@compiled
def _budget(candidates, ratios):
    budgets = np.empty(len(candidates), np.int64)
    for passage in range(len(candidates)):
        number = 0
        for position in range(candidates.shape[1]):
            number += candidates[passage, position]
        # The small term corrects rounding: 0.29 x 100 is 28.999999999999996 in floating point.
        budgets[passage] = np.floor(number * ratios[passage] + 1e-9)
    return budgets


@compiled
def top(values, k):
    """Mark the k[b] highest values of each row, from the left among ties: bool [B, n].

    values: float32 [B, n], minus infinity where masking is not allowed.
    """
    chosen = np.zeros(values.shape, np.bool_)
    length = values.shape[1]
    ordered = np.empty(length, np.int32)  # integers in the order of the values
    for row in range(len(values)):
        number = k[row]
        if number == 0:
            continue
        bits = values[row].view(np.int32)
        low = HALF
        high = ~HALF
        for position in range(length):
            code = bits[position] ^ ((bits[position] >> 31) & HALF)
            ordered[position] = code
            low = code if code < low else low
            high = code if code > high else high
        # Bisection for the largest threshold that at least `number` values reach. Counting all
        # values is cheap; a mispredicted branch is expensive.
        first = np.int64(low)
        last = np.int64(high)
        reached = length
        while first < last and reached != number:
            middle = (first + last + 1) >> 1
            count = count_from(ordered, np.int32(middle))
            if count >= number:
                first = middle
                reached = count
            else:
                last = middle - 1
        ties = number
        if reached != number:
            ties -= count_from(ordered, np.int32(first + 1)) if first < HALF else 0
        for position in range(length):
            chosen[row, position] = ordered[position] >= first
        if reached != number:
            for position in range(length):
                if ordered[position] == first:
                    chosen[row, position] = ties > 0
                    ties -= 1
    return chosen


@compiled
def count_from(ordered, least):
    """Count the values of `ordered`, int32, that are at least `least`."""
    number = np.int32(0)
    for position in range(len(ordered)):
        number += np.int32(ordered[position] >= least)
    return number
