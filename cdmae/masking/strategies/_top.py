"""The k highest of each row, as a mask: the last step of every strategy that sorts."""

# ruff: noqa: ANN001, ANN202 (numba infers the types)
from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled

HALF = np.int32(0x7FFFFFFF)


@compiled
def budget(candidates, ratio):
    """Algorithm 1, line 6: k = floor(n x p), n the candidates of each passage: int64 [B]."""
    budgets = np.empty(len(candidates), np.int64)
    for passage in range(len(candidates)):
        number = 0
        for place in range(candidates.shape[1]):
            number += candidates[passage, place]
        budgets[passage] = np.floor(number * ratio + 1e-9)  # 0.29 x 100 is 28.999999999999996 in floating point
    return budgets


@compiled
def top(values, k):
    """Return the k[b] highest `values` of each row, ties from the left: bool [B, n].

    values float32 [B, n], minus infinity for what is no candidate.
    """
    chosen = np.zeros(values.shape, np.bool_)
    length = values.shape[1]
    ordered = np.empty(length, np.int32)  # sorts as the values do
    for row in range(len(values)):
        number = k[row]
        if number == 0:
            continue
        bits = values[row].view(np.int32)
        low, high = HALF, ~HALF
        for place in range(length):
            code = bits[place] ^ ((bits[place] >> 31) & HALF)
            ordered[place] = code
            low = code if code < low else low
            high = code if code > high else high
        # Bisection: the largest value that at least `number` reach. Counting all is cheap, guessing a branch is not.
        first, last = np.int64(low), np.int64(high)
        reached = length
        while first < last and reached != number:
            middle = (first + last + 1) >> 1
            reached_ = count_from(ordered, np.int32(middle))
            if reached_ >= number:
                first, reached = middle, reached_
            else:
                last = middle - 1
        ties = number
        if reached != number:
            ties -= count_from(ordered, np.int32(first + 1)) if first < HALF else 0
        for place in range(length):
            chosen[row, place] = ordered[place] >= first
        if reached != number:
            for place in range(length):
                if ordered[place] == first:
                    chosen[row, place] = ties > 0
                    ties -= 1
    return chosen


@compiled
def count_from(ordered, least):
    """Count how many of `ordered` int32 are at least `least`."""
    number = np.int32(0)
    for place in range(len(ordered)):
        number += np.int32(ordered[place] >= least)
    return number
