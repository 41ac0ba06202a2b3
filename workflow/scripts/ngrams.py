"""How often every n-gram of a collection occurs."""

import os
from pathlib import Path
from typing import Any

from cdmae.cli import command
from cdmae.importance import ngrams
from cdmae.tokens.corpus import read_tokens


@command
def main(
    *, tokens: Path, tokenizer: Path, settings: dict[str, Any], output: Path, threads: int = 1, memory: int = 0
) -> None:
    """Count the n-grams of the words of `tokens`, exactly, at every position.

    memory: bytes for the keys of one order, a quarter of the machine without; less takes longer for the same result.
    """
    del tokenizer  # the tokens say which word-pieces begin a word
    unit, window = settings["unit"], settings["window"]
    found = read_tokens(tokens)
    ngrams.count_to(output, found, unit=unit, window=window, threads=threads, memory=memory or _quarter())


def _quarter() -> int:
    """Return a quarter of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


if __name__ == "__main__":
    main()
