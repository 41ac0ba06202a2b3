"""Count the n-grams of a collection."""

from pathlib import Path
from typing import Any

from cdmae.importance import ngrams
from cdmae.job import run
from cdmae.tokens.corpus import read_tokens


def main(*, tokens: Path, settings: dict[str, Any], output: Path, threads: int = 1):
    """Count the n-grams of the words of `tokens`, exactly, at every position."""
    ngrams.count_to(
        output,
        read_tokens(tokens),
        unit=settings["unit"],
        window=settings["window"],
        threads=threads,
    )


if __name__ == "__main__":
    run(main, snakemake)
