"""Divide a collection into ranges of equal size, one per job."""

from __future__ import annotations

from typing import NamedTuple

from cdmae.errors import InputError


class Part(NamedTuple):
    """One of several ranges; numbers begin with 1, as in Snakemake's scatter items."""

    number: int
    parts: int

    @classmethod
    def read(cls, text: str) -> Part:
        """Read ``3-of-7``; raises `InputError` for other text."""
        words = text.split("-of-")
        if len(words) == 2 and all(word.isdecimal() for word in words):
            part = cls(*map(int, words))
            if 1 <= part.number <= part.parts:
                return part
        raise InputError(
            f"{text!r} is not a part; allowed: a number, -of- and the total, such as 3-of-7"
        )

    def of(self, length: int) -> tuple[int, int]:
        """Return the first row of this part of `length` rows, and the row after its last row."""
        return length * (self.number - 1) // self.parts, length * self.number // self.parts


WHOLE = "1-of-1"
