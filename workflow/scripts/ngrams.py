"""How often every n-gram of a collection occurs."""

import os
from pathlib import Path
from typing import Any

from cdmae.cli import command
from cdmae.importance import ngrams
from cdmae.tokens.corpus import read_tokens


@command
def main(*, tokens: Path, settings: dict[str, Any], output: Path, threads: int = 1, memory: int = 0):
    """Count the n-grams of the words of `tokens`, exactly, at every position.

    memory: bytes for the keys of one order, a quarter of the machine without; less takes longer for the same result.
    """
    unit, window = settings["unit"], settings["window"]
    most = memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    ngrams.count_to(output, read_tokens(tokens), unit=unit, window=window, threads=threads, memory=most)
