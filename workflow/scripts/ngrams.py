"""Count the n-grams of a collection."""

from pathlib import Path
from typing import Any

from cdmae.importance import ngrams
from cdmae.job import run
from cdmae.tokens.corpus import read_tokens


def main(*, tokens: Path, settings: dict[str, Any], output: Path, memory: int):
    """Count the n-grams of the words of `tokens`, exactly, at every position.

    memory: the megabytes that the job requested; half of them are for sorting.
    """
    ngrams.count_to(
        output,
        read_tokens(tokens),
        unit=settings["unit"],
        window=settings["window"],
        memory=memory * 500_000,
    )


if __name__ == "__main__":
    run(main, snakemake)
