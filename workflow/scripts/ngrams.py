"""How often every n-gram of a collection occurs."""

import os
from pathlib import Path
from typing import Any

from cdmae import files, ngrams
from cdmae.command import command


@command
def main(*, tokens: Path, tokenizer: Path, settings: dict[str, Any], output: Path, threads: int = 1):
    """Count the n-grams of the words of `tokens`, exactly, at every position."""
    del tokenizer  # the tokens say which word-pieces begin a word
    read = files.read_tokens(tokens)
    ngrams.count_to(output, read, unit=settings["unit"], window=settings["window"], threads=threads, memory=_memory())


def _memory() -> int:
    """What the keys of one order may take: a quarter of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


if __name__ == "__main__":
    main()
