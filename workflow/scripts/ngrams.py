"""Count the n-grams of a collection, exactly, at every position."""

from pathlib import Path
from typing import Any

from cdmae.importance import ngrams
from cdmae.job import run
from cdmae.tokens.corpus import read_tokens


def main(*, tokens: Path, settings: dict[str, Any], output: Path, memory: int) -> None:
    """Count n-grams; half of the requested memory, in MB, is for sorting."""
    ngrams.count_to(output, read_tokens(tokens), **settings, memory=memory * 500_000)


if __name__ == "__main__":
    run(main, snakemake)
