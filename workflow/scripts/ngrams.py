"""Count the n-grams of a collection."""

from pathlib import Path

from cdmae.importance.ngrams import count_to
from cdmae.job import run
from cdmae.tokens.corpus import read_tokens


def main(*, tokens: Path, unit: str, window: int, output: Path, memory: int) -> None:
    """Count exactly, at every position (equation 7).

    memory: in MB; half of it is for sorting n-grams.
    """
    count_to(output, read_tokens(tokens), unit=unit, window=window, memory=memory * 500_000)


if __name__ == "__main__":
    run(main, snakemake)
