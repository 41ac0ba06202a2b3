"""Compute the importance of a collection's word-pieces by the counts of its n-grams."""

from pathlib import Path
from typing import Any

from cdmae.importance import ami
from cdmae.job import run
from cdmae.tokens.corpus import read_tokens


def main(*, tokens: Path, ngrams: Path, formula: dict[str, Any], output: Path) -> None:
    """Average the PMI of the n-grams with each word (equation 8)."""
    ami.estimate(output, ngrams, read_tokens(tokens), formula)


if __name__ == "__main__":
    run(main, snakemake)
